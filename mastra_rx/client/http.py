"""Requests and streams of bytes. The only module that imports an HTTP library."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast

from ..chunks.wire import to_wire
from ..errors import SourceError, StreamInterrupted

try:
    import httpx2
except ModuleNotFoundError as error:  # pragma: no cover  # seen by a test in an environment of its own
    raise ModuleNotFoundError(
        'MastraClient needs an HTTP library: pip install "mastra-rx[http]"', name=error.name
    ) from None

log = logging.getLogger("mastra_rx")

_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
"""The request never reached a server, so nothing runs yet."""

_NOT_TAKEN = frozenset({429, 502, 503})
"""The server, or what stands before it, refused without starting anything."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request."""

    path: str
    body: Mapping[str, Any] | None = None
    method: str = "POST"
    query: Mapping[str, Any] = field(default_factory=dict[str, Any])
    repeatable: bool = False
    """It starts nothing, so it may be sent again whatever became of it."""


class Http:
    """A server: where it is, how to speak to it, and a pool of connections for each event loop."""

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        retries: int = 3,
        backoff: float = 0.3,
        connect_timeout: float = 10.0,
        idle_timeout: float | None = 300.0,
        http_client: httpx2.AsyncClient | None = None,
    ) -> None:
        if http_client is not None and not isinstance(http_client, httpx2.AsyncClient):
            raise TypeError(f"http_client is an httpx2.AsyncClient, not {type(http_client).__name__}")
        if not base_url.startswith(("http://", "https://")):
            raise ValueError(f"base_url={base_url!r}: give the server's address, as in http://localhost:4111")
        self.base_url = base_url.rstrip("/")
        self.retries = retries
        self.backoff = backoff
        self._headers = dict(headers or {})
        self._timeout = httpx2.Timeout(connect_timeout, read=idle_timeout)
        self._idle_timeout = idle_timeout
        self._given = http_client
        self._pools: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncClient] = (
            weakref.WeakKeyDictionary()
        )

    async def json(self, call: Call) -> Any:
        """The JSON answer to a call. Raises `SourceError` where the server refuses."""
        async with self._response(call) as response:
            body = await response.aread()
        try:
            return json.loads(body) if body else None
        except ValueError:
            raise SourceError(f"{self._name(call)} did not answer with JSON", status=response.status_code) from None

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncGenerator[tuple[str, AsyncIterator[bytes]]]:
        """The content type of the answer, and its bytes as they come. Leaving closes the connection."""
        async with self._response(call) as response:
            yield response.headers.get("content-type", ""), self._bytes(call, response)

    async def aclose(self) -> None:
        """Close the pool of the running loop; a client that was given stays open."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.aclose()

    async def _bytes(self, call: Call, response: httpx2.Response) -> AsyncIterator[bytes]:
        try:
            async for data in response.aiter_bytes():
                yield data
        except httpx2.ReadTimeout as error:
            raise StreamInterrupted(f"{self._name(call)}: silence for {self._idle_timeout:g} seconds") from error
        except httpx2.DecodingError as error:
            raise SourceError(f"{self._name(call)}: the compressed body is broken: {error}") from error
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            reason = str(error) or type(error).__name__
            raise StreamInterrupted(f"{self._name(call)}: the connection broke off: {reason}") from error

    @asynccontextmanager
    async def _response(self, call: Call) -> AsyncGenerator[httpx2.Response]:
        """An answer with a status of success. Tried again only while it is sure that nothing was started."""
        for attempt in range(self.retries + 1):
            last = attempt == self.retries
            context = self._send(call)
            try:
                response = await context.__aenter__()
            except _NOT_SENT as error:
                if last:
                    raise SourceError(f"cannot reach {self.base_url}: {str(error) or type(error).__name__}") from error
                await self._pause(attempt)
                continue
            except httpx2.HTTPError as error:
                if call.repeatable and not last:
                    await self._pause(attempt)
                    continue
                reason = str(error) or type(error).__name__
                raise SourceError(f"{self._name(call)} failed before an answer came: {reason}") from error
            except (httpx2.InvalidURL, httpx2.TooManyRedirects) as error:
                raise SourceError(f"{self._name(call)}: {error}") from error
            try:
                if response.status_code in _NOT_TAKEN and not last:
                    await self._pause(attempt, response.headers.get("retry-after"))
                    continue
                if not response.is_success:
                    raise await self._refusal(call, response)
                yield response
                return
            finally:
                with suppress(httpx2.HTTPError):
                    await context.__aexit__(None, None, None)

    def _send(self, call: Call) -> AbstractAsyncContextManager[httpx2.Response]:
        content = None if call.body is None else _dumped(call.body)
        headers = {**self._headers, **({} if content is None else {"content-type": "application/json"})}
        return self._pool().stream(
            call.method,
            self.base_url + call.path,
            content=content,
            headers=headers,
            params=dict(call.query) or None,
            timeout=self._timeout,
            follow_redirects=True,
        )

    def _pool(self) -> httpx2.AsyncClient:
        if self._given is not None:
            return self._given
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None or pool.is_closed:
            # Servers close a quiet connection after about 5 seconds; one that is used just then would lose its request.
            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=2.0)
            pool = self._pools[loop] = httpx2.AsyncClient(limits=limits)
        return pool

    async def _pause(self, attempt: int, retry_after: str | None = None) -> None:
        delay = self.backoff * 2**attempt * (0.5 + random.random())
        if retry_after is not None and retry_after.isdigit():
            delay = min(float(retry_after), 30.0)
        await asyncio.sleep(delay)

    async def _refusal(self, call: Call, response: httpx2.Response) -> SourceError:
        """What the server said instead of a stream."""
        body: Any = None
        with suppress(httpx2.HTTPError, httpx2.StreamError):
            await response.aread()
            body = response.text
            with suppress(ValueError):
                body = response.json()
        told = cast("dict[str, Any]", body) if isinstance(body, dict) else None
        said = cast("Any", body) if told is None else told.get("error") or told.get("message")
        issues = None if told is None else told.get("issues")
        message = f"{self._name(call)} answered {response.status_code}: {said or response.reason_phrase}"
        if issues:
            message += f" {json.dumps(issues)}"
        return SourceError(message[:2000], status=response.status_code, body=body)

    def _name(self, call: Call) -> str:
        return f"{call.method} {self.base_url}{call.path}"


def _dumped(body: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(body, default=_jsonable, allow_nan=False).encode()
    except (ValueError, TypeError) as error:
        raise SourceError(f"the request is not JSON: {error}") from error


def _jsonable(value: Any) -> Any:
    wire = to_wire(value)
    if wire == repr(value):
        raise TypeError(f"nobody knows what {type(value).__name__} is in JSON")
    return wire
