"""Every exception of the library.

    MastraRxError
    +-- SourceError               the source of chunks failed; `__cause__` is what it raised
    |   +-- ChunkDecodeError      a line, an event or a record is not a chunk
    |   +-- StreamInterrupted     the source closed before the run was over
    +-- AgentError                the run failed: an `error` chunk came
    +-- OutputValidationError     the object does not fit the schema (also a ValueError)
    +-- PartialJSONError          the text is not JSON (also a ValueError)
    +-- SchemaError               what was given as a schema is none (also a TypeError)
    +-- StreamDisposed            `dispose()` was called before the run was over
    +-- NoValueError              a view ended without the value that was asked for (also a LookupError)
    +-- BlockingCallError         a blocking call inside a running event loop (also a RuntimeError)

What ended a run has `partial`: the full output as far as it came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class MastraRxError(Exception):
    """The base of all."""

    partial: Any = None
    """The `FullOutput` so far, where a run ended in this error; else None."""


class SourceError(MastraRxError):
    """The source of chunks failed; what it had given before is in the views.

    `status` is the HTTP status where a server refused, `body` what it said.
    """

    def __init__(self, message: str, *, status: int | None = None, body: Any = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = body


class ChunkDecodeError(SourceError):
    """A line, an event or a record is not a chunk.

    `line` counts from 1 (lines of a file, events or records of a byte stream), `text` is what stood there.
    """

    def __init__(self, reason: str, *, text: str, line: int | None = None, place: str = "line") -> None:
        where = "" if line is None else f"{place} {line}: "
        super().__init__(f"{where}{reason}: {_shortened(text)}")
        self.reason = reason
        self.text = text
        self.line = line

    def at(self, line: int, place: str = "line") -> ChunkDecodeError:
        """The same error, with the place where it happened."""
        return ChunkDecodeError(self.reason, text=self.text, line=line, place=place)


class StreamInterrupted(SourceError):
    """The source closed without a `finish`, `error` or `abort` chunk: the run is not over, its rest did not come."""


class AgentError(MastraRxError):
    """The run failed. Message, name, code and whatever else the `error` chunk said.

    Mastra 1.71.0's rule for making an error of what was thrown: an object's `message`, else its JSON text; a string
    itself; anything else is "Unknown error chunk in stream".
    """

    def __init__(self, message: str, *, data: Mapping[str, Any] | None = None, cause: AgentError | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.data: Mapping[str, Any] = data or {}
        """Every key of the wire's error."""
        self.__cause__ = cause

    @property
    def name(self) -> str:
        """The name of the error's class on the server, `Error` if it did not say."""
        return str(self.data.get("name", "Error"))

    @property
    def code(self) -> str | None:
        """The error's code: a provider's, or the id of a Mastra error."""
        code = self.data.get("code", self.data.get("id"))
        return None if code is None else str(code)

    @property
    def status_code(self) -> int | None:
        """The provider's HTTP status."""
        status = self.data.get("statusCode")
        return status if isinstance(status, int) else None

    @property
    def is_retryable(self) -> bool | None:
        """Whether the provider says that trying again may help."""
        retryable = self.data.get("isRetryable")
        return retryable if isinstance(retryable, bool) else None

    @property
    def details(self) -> Any:
        """A Mastra error's details, for example the value that failed validation."""
        return self.data.get("details")

    def __to_wire__(self) -> dict[str, Any]:
        return {"name": self.name, "message": self.message, **self.data}


class OutputValidationError(MastraRxError, ValueError):
    """The object does not fit the schema.

    `value` is what came, `errors` what is wrong with it (one sentence each, with the path), `index` the element of
    an array that failed, `reason` the finish reason where the output was cut off.
    """

    def __init__(
        self,
        message: str,
        *,
        value: Any = None,
        errors: Sequence[str] = (),
        index: int | None = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(message)
        self.value = value
        self.errors = tuple(errors)
        self.index = index
        self.reason = reason


class PartialJSONError(MastraRxError, ValueError):
    """The text is not JSON, nor the beginning of it. `offset` counts characters from 0, `line` and `column` from 1."""

    def __init__(self, reason: str, *, offset: int, line: int, column: int) -> None:
        super().__init__(f"{reason} at line {line}, column {column} (offset {offset})")
        self.reason = reason
        self.offset = offset
        self.line = line
        self.column = column


class SchemaError(MastraRxError, TypeError):
    """What was given as a schema is neither a type that pydantic knows nor a JSON schema."""


class StreamDisposed(MastraRxError):
    """`dispose()` was called before the run was over."""


class NoValueError(MastraRxError, LookupError):
    """A view ended without giving the value that was asked for."""


class BlockingCallError(MastraRxError, RuntimeError):
    """A blocking call inside a running event loop would stop the loop, and with it the stream it waits for."""


def _shortened(text: str, limit: int = 200) -> str:
    return repr(text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)")
