"""Python functions that an agent may call.

    def weather(city: str, days: int = 1) -> dict:
        \"\"\"The weather forecast of a city.\"\"\"

    client.agent("guide").stream("What to wear in Oslo?", client_tools=[weather])

Type hints and docstring become the JSON schema that the model sees. The function runs here, sync or async, when the
agent's turn stops to wait for it; the run goes on with its result, in the same output. What it raises becomes an error
that the model sees.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic_core import to_jsonable_python

from ..chunks.parse import chunk_of
from ..chunks.wire import to_wire
from ..operators.tool_calls import ToolCallReducer
from ..sources.source import aclose_quietly
from .http import Call

if TYPE_CHECKING:
    from ..chunks import Chunk, FinishChunk, ToolCallChunk, ToolErrorChunk, ToolResultChunk
    from .streams import Batches

log = logging.getLogger("mastra_rx")

MAX_ROUNDS = 32
"""How often the run goes on with results before it is cut off: a model that only calls tools would never end."""


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A tool that runs here. Make one of a function with `ClientTool.of`, or give the function itself."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    execute: Callable[..., Any]
    """Called with the arguments as keywords; may be a coroutine function."""
    arguments: TypeAdapter[Any] | None = None

    @classmethod
    def of(cls, function: Callable[..., Any] | ClientTool) -> ClientTool:
        """The tool that a function stands for, by its type hints and docstring."""
        if isinstance(function, ClientTool):
            return function
        if not callable(function):
            raise TypeError(f"a client tool is a function or a ClientTool, not {type(function).__name__}")
        signature = inspect.signature(function, eval_str=True)
        fields: dict[str, Any] = {}
        for name, parameter in signature.parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise TypeError(f"client tool {function.__name__}: {name!r} must be an argument that has a name")
            hint = Any if parameter.annotation is parameter.empty else parameter.annotation
            fields[name] = (hint, ... if parameter.default is parameter.empty else Field(parameter.default))
        model = create_model(function.__name__, __config__=ConfigDict(arbitrary_types_allowed=True), **fields)
        schema = {**model.model_json_schema(), "additionalProperties": False}
        schema.pop("title", None)
        description = inspect.getdoc(function) or function.__name__
        return cls(function.__name__, description, schema, function, TypeAdapter(model))

    def __to_wire__(self) -> dict[str, Any]:
        return {"id": self.name, "description": self.description, "inputSchema": self.input_schema}

    async def call(self, args: Any) -> Any:
        """Run it. Raises what it raises, and `ValueError` where the arguments do not fit."""
        given = cast("dict[str, Any]", args) if isinstance(args, dict) else {}
        if self.arguments is not None:
            try:
                model: BaseModel = self.arguments.validate_python(given)
            except ValidationError as error:
                raise ValueError(f"the arguments do not fit: {error}") from error
            given = {name: getattr(model, name) for name in type(model).model_fields}
        if inspect.iscoroutinefunction(self.execute):
            return await self.execute(**given)
        return await asyncio.to_thread(functools.partial(self.execute, **given))


def tools_of(functions: Iterable[Callable[..., Any] | ClientTool] | None) -> dict[str, ClientTool]:
    """The tools by name."""
    return {tool.name: tool for tool in map(ClientTool.of, functions or ())}


async def with_client_tools(
    call: Call, tools: Mapping[str, ClientTool], read: Callable[[Call], Batches]
) -> AsyncIterator[Sequence[Chunk]]:
    """The chunks of a call, and of those that carry on with the results of our tools, until no result is asked for."""
    body = dict(call.body or {})
    for rounds_left in reversed(range(MAX_ROUNDS)):
        turn = _Turn(tools)
        batches = read(Call(call.path, body))
        try:
            async for batch in batches:
                for chunk in batch:
                    turn.see(chunk)
                yield batch
        finally:
            await aclose_quietly(batches)
        if not turn.asks:
            return
        if not rounds_left:
            log.warning("the model has called client tools for %d rounds: the run is cut off", MAX_ROUNDS)
            return
        results: list[ToolResultChunk | ToolErrorChunk] = []
        for pending in turn.asks:
            result = await _run(tools[cast("str", pending.payload.tool_name)], pending)
            results.append(result)
            yield [result]
        body = _continued(body, turn, results)


class _Turn:
    """What a turn asks of us: calls of our tools that nothing came of."""

    def __init__(self, tools: Mapping[str, ClientTool]) -> None:
        self._tools = tools
        self._calls = ToolCallReducer()
        self._handlers = self._calls.handlers()
        self._settled: set[str] = set()
        self.finish: FinishChunk | None = None
        self.text: list[str] = []

    def see(self, chunk: Chunk) -> None:
        handler = self._handlers.get(chunk.type)
        if handler is not None:
            handler(chunk)
        elif chunk.type == "tool-result" or chunk.type == "tool-error":
            self._settled.add(chunk.payload.tool_call_id)
        elif chunk.type == "finish":
            self.finish = chunk
        elif chunk.type == "text-delta":
            self.text.append(chunk.text)

    @property
    def asks(self) -> list[ToolCallChunk]:
        if self.finish is None:
            return []
        result = self.finish.payload.step_result
        if result is None or result.reason != "tool-calls":
            return []
        return [
            call
            for call in self._calls.of_run
            if call.payload.tool_name in self._tools and call.payload.tool_call_id not in self._settled
        ]


async def _run(tool: ClientTool, call: ToolCallChunk) -> ToolResultChunk | ToolErrorChunk:
    """Run the tool; its result, or the error that the model is to see, as a chunk."""
    payload = call.payload
    wire = {"toolCallId": payload.tool_call_id, "toolName": payload.tool_name, "args": payload.args}
    try:
        if payload.args_error is not None:
            raise ValueError(payload.args_error)
        result = _jsonable(await tool.call(payload.args))
        kind, outcome = "tool-result", {"result": result}
    except Exception as error:
        told = {"name": type(error).__name__, "message": str(error) or type(error).__name__}
        kind, outcome = "tool-error", {"error": told}
    made = chunk_of({"type": kind, "runId": call.run_id, "from": call.from_, "payload": {**wire, **outcome}})
    return cast("ToolResultChunk | ToolErrorChunk", made)


def _jsonable(value: Any) -> Any:
    return json.loads(json.dumps(to_jsonable_python(value, by_alias=True, fallback=str), allow_nan=False))


def _continued(body: dict[str, Any], turn: _Turn, results: list[ToolResultChunk | ToolErrorChunk]) -> dict[str, Any]:
    """The request that carries on: what was asked, what the model said, and the results.

    A conversation that the server keeps (memory with a thread) only needs the results.
    """
    answers = {"role": "tool", "content": [_answer(result) for result in results]}
    memory = body.get("memory")
    if isinstance(memory, Mapping) and cast("Mapping[str, Any]", memory).get("thread"):
        messages: list[Any] = [answers]
    else:
        calls = [_called(call) for call in turn.asks]
        text = "".join(turn.text)
        said = [{"type": "text", "text": text}] if text else []
        messages = [*_as_list(body.get("messages")), {"role": "assistant", "content": [*said, *calls]}, answers]
    return {**{key: value for key, value in body.items() if key != "runId"}, "messages": messages}


def _called(call: ToolCallChunk) -> dict[str, Any]:
    payload = call.payload
    return {
        "type": "tool-call",
        "toolCallId": payload.tool_call_id,
        "toolName": payload.tool_name,
        "args": to_wire(payload.args),
    }


def _answer(result: ToolResultChunk | ToolErrorChunk) -> dict[str, Any]:
    payload = result.payload
    base = {"type": "tool-result", "toolCallId": payload.tool_call_id, "toolName": payload.tool_name}
    if result.type == "tool-error":
        return {**base, "input": payload.args, "result": {"error": result.payload.error["message"]}, "isError": True}
    return {**base, "input": payload.args, "result": result.payload.result}


def _as_list(messages: Any) -> list[Any]:
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    items = cast("list[Any]", messages) if isinstance(messages, list) else [messages]
    return [{"role": "user", "content": item} if isinstance(item, str) else item for item in items]
