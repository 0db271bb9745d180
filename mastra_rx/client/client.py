"""`MastraClient`: a Mastra server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from ..output import MastraModelOutput
from ..sources.loop import background_loop
from ..sources.source import is_running_here
from ..view import View
from .agent import Agent
from .calls import call_view
from .http import Call, Http
from .streams import read, source
from .workflow import Workflow

if TYPE_CHECKING:
    import httpx2


class MastraClient:
    """A Mastra server, in asyncio, in plain scripts, in Jupyter and under UI loops alike.

    `headers` go with every request. `retries` is how often a request is tried again, with growing pauses from `backoff`
    seconds on, as long as it is sure that nothing was started (no connection, or 429, 502, 503). `idle_timeout` is how
    many seconds of silence end a stream in `StreamInterrupted`; None waits for ever. `http_client` is an
    `httpx2.AsyncClient` of your own, for auth, proxies or TLS.

        client = mx.MastraClient("http://localhost:4111")
        output = client.agent("weather").stream("How is the weather in Oslo?")
        for piece in output.text_stream:
            print(piece, end="")
    """

    def __init__(
        self,
        base_url: str = "http://localhost:4111",
        *,
        headers: Mapping[str, str] | None = None,
        retries: int = 3,
        backoff: float = 0.3,
        connect_timeout: float = 10.0,
        idle_timeout: float | None = 300.0,
        http_client: httpx2.AsyncClient | None = None,
    ) -> None:
        self._http = Http(
            base_url,
            headers=headers,
            retries=retries,
            backoff=backoff,
            connect_timeout=connect_timeout,
            idle_timeout=idle_timeout,
            http_client=http_client,
        )

    def __repr__(self) -> str:
        return f"<MastraClient {self._http.base_url}>"

    def agent(self, agent_id: str) -> Agent:
        """The agent of that id; nothing is asked of the server yet."""
        return Agent(self._http, agent_id)

    def agents(self) -> View[dict[str, Any]]:
        """The server's agents by id, as it describes them."""
        return call_view(self._http, Call("/api/agents", method="GET"), "agents()")

    def workflow(self, workflow_id: str) -> Workflow:
        """The workflow of that id; nothing is asked of the server yet."""
        return Workflow(self._http, workflow_id)

    def workflows(self) -> View[dict[str, Any]]:
        """The server's workflows by id, as it describes them."""
        return call_view(self._http, Call("/api/workflows", method="GET"), "workflows()")

    @property
    def background_tasks(self) -> BackgroundTasks:
        """The server's task manager."""
        return BackgroundTasks(self._http)

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._http.aclose()

    def close(self) -> None:
        """Close the connections of the library's own event loop."""
        closing = asyncio.run_coroutine_threadsafe(self._http.aclose(), background_loop())
        if not is_running_here(background_loop()):  # in a callback it is: it must not wait for itself
            closing.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.aclose()


class BackgroundTasks:
    """The task manager of a server."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(self, **filters: Any) -> View[Any]:
        """The tasks, for example of an agent: `list(agent_id="worker")`."""
        from .agent import wire_options

        call = Call("/api/background-tasks", method="GET", query=wire_options(filters))
        return call_view(self._http, call, "background_tasks.list()")

    def get(self, task_id: str) -> View[Any]:
        """One task."""
        call = Call(f"/api/background-tasks/{quote(task_id, safe='')}", method="GET")
        return call_view(self._http, call, f"background_tasks.get({task_id!r})")

    def stream(self, *, history: int | None = None, **filters: Any) -> MastraModelOutput[Any]:
        """What happens to tasks from now on. The server never ends it: dispose the output."""
        from .agent import wire_options

        call = Call("/api/background-tasks/stream", method="GET", query=wire_options(filters))
        return MastraModelOutput(source(lambda: read(self._http, call, must_end=False)), history=history)

    def resume(self, task_id: str, data: Any = None) -> View[Any]:
        """Resume a suspended task with `data`, where the server has a route for it.

        Servers up to @mastra/server 1.69.0 have none and answer 404, which raises `SourceError`.
        """
        call = Call(f"/api/background-tasks/{quote(task_id, safe='')}/resume", {"resumeData": data})
        return call_view(self._http, call, f"background_tasks.resume({task_id!r})")
