"""An agent on a server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload
from urllib.parse import quote

from pydantic import TypeAdapter
from pydantic.alias_generators import to_camel

from ..network_output import NetworkRunOutput
from ..output import MastraModelOutput
from ..schema import schema_of
from ..view import View
from .calls import call_view
from .http import Call, Http
from .streams import EnvelopePosition, observed, read, source
from .tools import ClientTool, tools_of, with_client_tools

if TYPE_CHECKING:
    from ..operators.object_result import ErrorStrategy

T = TypeVar("T")

Messages = str | Iterable[Any]
"""A text, texts, or messages: dicts such as `{"role": "user", "content": ...}` or pydantic models."""

Tools = Iterable[Callable[..., Any] | ClientTool]


class Agent:
    """An agent by its id. Nothing is sent before a view is subscribed, awaited or iterated."""

    def __init__(self, http: Http, agent_id: str) -> None:
        self._http = http
        self.id = agent_id
        self._path = f"/api/agents/{quote(agent_id, safe='')}"

    def __repr__(self) -> str:
        return f"<Agent {self.id} of {self._http.base_url}>"

    # ---- what it is --------------------------------------------------------------------------------------------------

    def details(self) -> View[dict[str, Any]]:
        """Name, instructions, model, tools, ... as the server tells them."""
        return call_view(self._http, Call(self._path, method="GET"), f"agent({self.id!r}).details()")

    def tools(self) -> View[dict[str, Any]]:
        """The agent's tools by id."""
        return call_view(
            self._http,
            Call(self._path, method="GET"),
            f"agent({self.id!r}).tools()",
            lambda details: cast("dict[str, Any]", details.get("tools") or {}),
        )

    # ---- runs --------------------------------------------------------------------------------------------------------

    @overload
    def stream(
        self,
        messages: Messages,
        *,
        schema: type[T],
        error_strategy: ErrorStrategy = ...,
        fallback: Any = ...,
        client_tools: Tools | None = ...,
        include_raw: bool = ...,
        history: int | None = ...,
        **options: Any,
    ) -> MastraModelOutput[T]: ...
    @overload
    def stream(
        self,
        messages: Messages,
        *,
        schema: TypeAdapter[T],
        error_strategy: ErrorStrategy = ...,
        fallback: Any = ...,
        client_tools: Tools | None = ...,
        include_raw: bool = ...,
        history: int | None = ...,
        **options: Any,
    ) -> MastraModelOutput[T]: ...
    @overload
    def stream(
        self,
        messages: Messages,
        *,
        schema: Mapping[str, Any] | None = ...,
        error_strategy: ErrorStrategy = ...,
        fallback: Any = ...,
        client_tools: Tools | None = ...,
        include_raw: bool = ...,
        history: int | None = ...,
        **options: Any,
    ) -> MastraModelOutput[Any]: ...
    def stream(
        self,
        messages: Messages,
        *,
        schema: Any = None,
        error_strategy: ErrorStrategy = "strict",
        fallback: Any = None,
        client_tools: Tools | None = None,
        include_raw: bool = False,
        history: int | None = None,
        **options: Any,
    ) -> MastraModelOutput[Any]:
        """Run the agent.

        `schema` asks for structured output and says its type (see `MastraModelOutput`). `client_tools` are Python
        functions that the agent may call (see `client.tools`). Other options are the server's, in snake_case:
        `instructions`, `system`, `context`, `memory={"thread": ..., "resource": ...}`, `run_id`, `max_steps`,
        `model_settings`, `provider_options`, `active_tools`, `tool_choice`, `require_tool_approval`,
        `request_context`, `tracing_options`, ...; unknown ones are passed on.

        >>> output = client.agent("weather").stream("Oslo?", schema=Forecast)      # doctest: +SKIP
        >>> async for piece in output.text_stream: ...                             # doctest: +SKIP
        """
        body = self._body(messages, schema, error_strategy, fallback, include_raw, options)
        return self._output(
            f"{self._path}/stream", body, schema, error_strategy, fallback, include_raw, history, client_tools
        )

    def until_idle(
        self,
        messages: Messages,
        *,
        max_idle: float | None = None,
        schema: Any = None,
        error_strategy: ErrorStrategy = "strict",
        fallback: Any = None,
        client_tools: Tools | None = None,
        include_raw: bool = False,
        history: int | None = None,
        **options: Any,
    ) -> MastraModelOutput[Any]:
        """Run the agent, and its further turns, until no background task is running.

        `max_idle` is how many seconds to wait between turns while tasks run (the server's default is 300). Needs
        `memory`, or the server plays a single turn. Values cover all turns (D12).
        """
        body = self._body(messages, schema, error_strategy, fallback, include_raw, options)
        if max_idle is not None:
            body["maxIdleMs"] = round(max_idle * 1000)
        path = f"{self._path}/stream-until-idle"
        return self._output(path, body, schema, error_strategy, fallback, include_raw, history, client_tools)

    def network(self, messages: Messages, *, history: int | None = None, **options: Any) -> NetworkRunOutput:
        """Run the agent as a network that routes between agents, workflows and tools. Options as in `stream`."""
        call = Call(f"{self._path}/network", self._body(messages, None, "strict", None, False, options))
        return NetworkRunOutput(source(lambda: read(self._http, call)), history=history)

    # ---- a run that waits --------------------------------------------------------------------------------------------

    def approve_tool_call(
        self, run_id: str, tool_call_id: str | None = None, *, history: int | None = None, **options: Any
    ) -> MastraModelOutput[Any]:
        """Approve the call that a suspended run waits for, and see the run go on."""
        return self._resumed("approve-tool-call", run_id, tool_call_id, history, options)

    def decline_tool_call(
        self, run_id: str, tool_call_id: str | None = None, *, history: int | None = None, **options: Any
    ) -> MastraModelOutput[Any]:
        """Decline the call that a suspended run waits for, and see the run go on."""
        return self._resumed("decline-tool-call", run_id, tool_call_id, history, options)

    def resume_stream(
        self,
        resume_data: Any,
        *,
        run_id: str,
        tool_call_id: str | None = None,
        history: int | None = None,
        **options: Any,
    ) -> MastraModelOutput[Any]:
        """Give a tool that suspended itself what it waits for, and see the run go on."""
        return self._resumed("resume-stream", run_id, tool_call_id, history, {**options, "resume_data": resume_data})

    def observe(self, run_id: str, offset: int = 0, *, history: int | None = None) -> MastraModelOutput[Any]:
        """See a run of a durable agent, from chunk `offset` on, also a second time or after its end.

        Where the connection drops it is taken up again, each chunk once. The server sends nothing for runs that it
        does not keep: those of other agents, or of long ago.
        """
        path = f"{self._path}/observe"

        def call_at(position: int) -> Call:
            return Call(path, {"runId": run_id, "offset": position}, repeatable=True)

        EnvelopePosition(offset)  # refuses a bad offset here and now
        batches = source(lambda: observed(self._http, call_at, EnvelopePosition(offset)))
        return MastraModelOutput(batches, history=history)

    # ---- how requests are made ---------------------------------------------------------------------------------------

    def _resumed(
        self, verb: str, run_id: str, tool_call_id: str | None, history: int | None, options: Mapping[str, Any]
    ) -> MastraModelOutput[Any]:
        body = wire_options(options)
        body["runId"] = run_id
        if tool_call_id is not None:
            body["toolCallId"] = tool_call_id
        return self._output(f"{self._path}/{verb}", body, history=history)

    def _body(
        self,
        messages: Messages,
        schema: Any,
        error_strategy: ErrorStrategy,
        fallback: Any,
        include_raw: bool,
        options: Mapping[str, Any],
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "messages": messages if isinstance(messages, str) else list(messages),
            **wire_options(options),
        }
        if schema is not None:
            wanted: dict[str, Any] = {"schema": dict(schema_of(schema).json_schema)}
            if error_strategy != "strict":
                wanted["errorStrategy"] = error_strategy
            if error_strategy == "fallback":
                wanted["fallbackValue"] = fallback
            body["structuredOutput"] = {**wanted, **body.get("structuredOutput", {})}
        if include_raw:
            body["includeRawChunks"] = True
        return body

    def _output(
        self,
        path: str,
        body: dict[str, Any],
        schema: Any = None,
        error_strategy: ErrorStrategy = "strict",
        fallback: Any = None,
        include_raw: bool = False,
        history: int | None = None,
        client_tools: Tools | None = None,
    ) -> MastraModelOutput[Any]:
        tools = tools_of(client_tools)
        if tools:
            call = Call(path, {**body, "clientTools": tools})
            batches = source(lambda: with_client_tools(call, tools, lambda call: read(self._http, call)))
        else:
            batches = source(lambda: read(self._http, Call(path, body)))
        return MastraModelOutput(
            batches,
            schema=schema,
            error_strategy=error_strategy,
            fallback=fallback,
            include_raw=include_raw,
            history=history,
        )


_NESTED = frozenset({"model_settings", "memory", "tracing_options"})
"""Options that are objects with names of the server's own."""


def wire_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options by the wire's names. What is inside is passed on as it is, but for a few objects of the server's own."""
    wire: dict[str, Any] = {}
    for name, value in options.items():
        if name in _NESTED and isinstance(value, Mapping):
            value = {to_camel(key): item for key, item in cast("Mapping[str, Any]", value).items()}
        wire[to_camel(name)] = value
    return wire
