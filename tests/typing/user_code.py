"""What users write, and the types that they get. Not run: pyright (strict) and mypy (strict) check each line.

One section a topic of the README: outputs, views, schemas, chunks, operators, sources, the client.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, assert_never, assert_type

from pydantic import BaseModel, TypeAdapter
from reactivex import Observable
from reactivex import operators as rxops

import mastra_rx as mx
from mastra_rx import operators as ops


class Recipe(BaseModel):
    name: str
    minutes: int


@dataclass
class City:
    name: str


class Weather(TypedDict):
    degrees: float


source: Observable[mx.Chunk] = mx.from_jsonl("run.jsonl")


# ---- outputs: the schema says what `object` is -----------------------------------------------------------------------


def schemas() -> None:
    assert_type(mx.MastraModelOutput(source, schema=Recipe), mx.MastraModelOutput[Recipe])
    assert_type(mx.MastraModelOutput(source, schema=City), mx.MastraModelOutput[City])
    assert_type(mx.MastraModelOutput(source, schema=Weather), mx.MastraModelOutput[Weather])
    assert_type(mx.MastraModelOutput(source, schema=list[Recipe]), mx.MastraModelOutput[list[Recipe]])
    assert_type(mx.MastraModelOutput(source, schema=TypeAdapter(Recipe)), mx.MastraModelOutput[Recipe])
    assert_type(mx.MastraModelOutput(source, schema=TypeAdapter(list[Recipe])), mx.MastraModelOutput[list[Recipe]])
    assert_type(mx.MastraModelOutput(source, schema=Recipe).object, mx.View[Recipe])
    plain: mx.MastraModelOutput = mx.MastraModelOutput(source)
    assert_type(plain.object, mx.View[Any])
    by_json_schema: mx.MastraModelOutput = mx.MastraModelOutput(source, schema={"type": "object"})
    assert_type(by_json_schema.object, mx.View[Any])


recipes = mx.MastraModelOutput[list[Recipe]](
    source, schema=list[Recipe], error_strategy="warn", include_raw=True, history=1000
)
output = mx.MastraModelOutput(source, schema=Recipe, error_strategy="fallback", fallback=Recipe(name="", minutes=0))


def streams() -> None:
    assert_type(recipes.object, mx.View[list[Recipe]])
    assert_type(recipes.element_stream, mx.View[Recipe])
    assert_type(recipes.object_stream, mx.View[Any])
    assert_type(output.full_stream, mx.View[mx.Chunk])
    assert_type(output.text_stream, mx.View[str])
    assert_type(output.reasoning_stream, mx.View[str])
    assert_type(output.tool_pairs, mx.View[mx.ToolPair])
    assert_type(output.tool_runs, mx.View[mx.ToolRun])
    assert_type(output.snapshots, mx.View[mx.Snapshot])
    assert_type(output.background_tasks, mx.View[mx.BackgroundTask])
    assert_type(output.evaluations, mx.View[mx.Evaluation])
    assert_type(output.turns, mx.View[mx.MastraModelOutput[Any]])
    assert_type(output.nested, mx.View[mx.NestedOutput])


def values() -> None:
    assert_type(output.text, mx.View[str])
    assert_type(output.reasoning, mx.View[str])
    assert_type(output.reasoning_text, mx.View[str | None])
    assert_type(output.reasoning_parts, mx.View[list[mx.ReasoningPart]])
    assert_type(output.tool_calls, mx.View[list[mx.ToolCallChunk]])
    assert_type(output.tool_results, mx.View[list[mx.ToolResultChunk]])
    assert_type(output.usage, mx.View[mx.Usage])
    assert_type(output.total_usage, mx.View[mx.Usage])
    assert_type(output.usage_tree, mx.View[mx.UsageNode])
    assert_type(output.finish_reason, mx.View[str | None])
    assert_type(output.steps, mx.View[list[mx.Step]])
    assert_type(output.sources, mx.View[list[mx.SourceChunk]])
    assert_type(output.files, mx.View[list[mx.FileChunk]])
    assert_type(output.warnings, mx.View[list[Any]])
    assert_type(output.request, mx.View[Mapping[str, Any]])
    assert_type(output.response, mx.View[Mapping[str, Any]])
    assert_type(output.provider_metadata, mx.View[Mapping[str, Any] | None])
    assert_type(output.suspend_payload, mx.View[Any])
    assert_type(output.resume_schema, mx.View[str | None])
    assert_type(output.get_full_output(), mx.View[mx.FullOutput[Recipe]])
    assert_type(output.get_full_output().run().object, Recipe | None)
    assert_type(output.consume_stream(print), mx.View[None])


def attributes() -> None:
    assert_type(output.run_id, str | None)
    assert_type(output.trace_id, str | None)
    assert_type(output.status, Literal["running", "success", "failed", "canceled", "suspended"])
    assert_type(output.error, Exception | None)
    assert_type(output.tripwire, mx.Tripwire | None)
    assert_type(output.current_step, mx.Step | None)
    assert_type(output.used_fallback_value, bool)
    with mx.MastraModelOutput(source, schema=Recipe) as closing:
        assert_type(closing, mx.MastraModelOutput[Recipe])
    output.dispose()


# ---- views: the ways to consume one ----------------------------------------------------------------------------------


async def in_asyncio() -> None:
    assert_type(await output.text, str)
    assert_type(await output.object, Recipe)
    assert_type(await recipes.object, list[Recipe])
    assert_type((await output.usage).total_tokens, int | float | None)
    async for piece in output.text_stream:
        assert_type(piece, str)
    async for recipe in recipes.element_stream:
        assert_type(recipe, Recipe)
    async for newest in output.snapshots.latest():
        assert_type(newest, mx.Snapshot)
    async for batch in output.full_stream.batches(0.1):
        assert_type(batch, list[mx.Chunk])
    async with mx.MastraModelOutput(source, schema=Recipe) as closing:
        assert_type(closing, mx.MastraModelOutput[Recipe])


def blocking() -> None:
    assert_type(output.text.run(), str)
    assert_type(output.object.run(), Recipe)
    for piece in output.text_stream:
        assert_type(piece, str)
    for recipe in recipes.element_stream:
        assert_type(recipe, Recipe)
    for newest in output.text_stream.latest():
        assert_type(newest, str)
    for batch in output.text_stream.batches(1):
        assert_type(batch, list[str])
    assert_type(sorted(recipes.element_stream, key=lambda recipe: recipe.minutes), list[Recipe])


def callbacks() -> None:
    pieces: list[str] = []
    subscription = output.text_stream.subscribe(pieces.append, print, lambda: None)
    subscription.dispose()
    output.tool_runs.subscribe(on_next=lambda run: print(run), on_error=lambda error: print(error))


# ---- chunks ----------------------------------------------------------------------------------------------------------


def narrowing(chunk: mx.Chunk) -> None:
    if chunk.type == "text-delta":
        assert_type(chunk, mx.TextDeltaChunk)
        assert_type(chunk.payload.text, str)
    elif chunk.type == "tool-call":
        assert_type(chunk, mx.ToolCallChunk)
        assert_type(chunk.payload.tool_call_id, str)
        assert_type(chunk.payload.tool_name, str | None)
    elif chunk.type == "tripwire":
        assert_type(chunk, mx.TripwireChunk)
    if isinstance(chunk, mx.FinishChunk):
        assert_type(chunk.payload.step_result, mx.StepResult | None)
    assert_type(chunk.run_id, str | None)
    assert_type(chunk.trace_id, str | None)


def matching(chunk: mx.Chunk) -> str:
    match chunk:
        case mx.TextDeltaChunk(payload=payload):
            return assert_type(payload.text, str)
        case mx.ToolCallDeltaChunk(args_text_delta=piece):
            return assert_type(piece, str)
        case mx.ErrorChunk():
            return assert_type(chunk, mx.ErrorChunk).type
        case mx.UnknownChunk(raw=raw, error=error):
            assert_type(error, Exception | None)
            return str(raw)
        case mx.DataChunk():
            return assert_type(chunk, mx.DataChunk).type
        case _:
            return ""


def matching_types(chunk: mx.TextDeltaChunk | mx.ToolResultChunk) -> None:
    match chunk.type:
        case "text-delta":
            assert_type(chunk.type, Literal["text-delta"])
        case "tool-result":
            assert_type(chunk.type, Literal["tool-result"])
        case _ as never:
            assert_never(never)


def parsing() -> None:
    assert_type(mx.parse_chunk({"type": "finish"}), mx.Chunk)
    assert_type(mx.parse_chunk('{"type": "finish"}'), mx.Chunk)
    assert_type(mx.parse_chunk(b'{"type": "finish"}'), mx.Chunk)
    assert_type(mx.to_wire(mx.parse_chunk(b"{}")), Any)
    chunk = mx.TextDeltaChunk(payload=mx.TextDeltaPayload(text="Hi"), run_id="r")
    assert_type(chunk.type, Literal["text-delta"])
    assert_type(chunk.extra, Mapping[str, Any])


# ---- operators -------------------------------------------------------------------------------------------------------


def joined(text: str, piece: str) -> str:
    return text + piece


def piping() -> None:
    assert_type(source.pipe(ops.text_deltas()), Observable[str])
    assert_type(source.pipe(ops.text_deltas(), rxops.map(len)), Observable[int])
    assert_type(source.pipe(ops.text_deltas(), rxops.map(str.upper)), Observable[str])
    assert_type(output.full_stream.pipe(ops.tool_pairs()), Observable[mx.ToolPair])
    assert_type(output.full_stream.pipe(ops.tool_runs()), Observable[mx.ToolRun])
    assert_type(output.full_stream.pipe(ops.usage()), Observable[mx.Usage])
    assert_type(output.full_stream.pipe(ops.running_usage()), Observable[mx.Usage])
    assert_type(output.full_stream.pipe(ops.steps()), Observable[mx.Step])
    assert_type(output.full_stream.pipe(ops.text()), Observable[str])
    assert_type(output.full_stream.pipe(ops.full_output()), Observable[mx.FullOutput[Any]])
    assert_type(output.full_stream.pipe(ops.elements(list[Recipe])), Observable[Any])
    assert_type(output.full_stream.pipe(ops.of_type("tool-call", "data-*")), Observable[Any])
    assert_type(output.text_stream.pipe(rxops.scan(joined, "")), Observable[str])
    assert_type(mx.as_view(source.pipe(ops.text_deltas())), mx.View[str])
    assert_type(mx.as_view(source.pipe(ops.usage())).run(), mx.Usage)


# ---- sources ---------------------------------------------------------------------------------------------------------


async def of_a_server() -> AsyncIterator[bytes]:
    yield b""


async def of_my_own() -> AsyncIterator[mx.Chunk]:
    yield mx.parse_chunk({"type": "finish"})


def sources() -> None:
    assert_type(mx.from_chunks([{"type": "finish"}, '{"type": "finish"}', b'{"type": "finish"}']), Observable[mx.Chunk])
    assert_type(mx.from_chunks(of_my_own()), Observable[mx.Chunk])
    assert_type(mx.from_bytes(of_a_server()), Observable[mx.Chunk])
    assert_type(mx.from_bytes([b""], framing="sse"), Observable[mx.Chunk])
    assert_type(mx.from_jsonl(mx.recording("tools"), speed=2), Observable[mx.Chunk])
    mx.record(source, "copy.jsonl").dispose()
    assert_type(mx.MastraModelOutput(of_my_own(), schema=Recipe), mx.MastraModelOutput[Recipe])
    assert_type(mx.MastraModelOutput([{"type": "finish"}], schema=Recipe).text.run(), str)
    assert_type(mx.WorkflowRunOutput(source).steps, mx.View[dict[str, mx.WorkflowStep]])
    assert_type(mx.NetworkRunOutput(source).decisions, mx.View[mx.RoutingDecision])
    assert_type(mx.NetworkRunOutput(source).usage, mx.View[mx.Usage])


# ---- the client ------------------------------------------------------------------------------------------------------


def weather(city: str) -> Weather:
    """The weather of a city."""
    return {"degrees": len(city)}


def client() -> None:
    with mx.MastraClient("http://localhost:4111", headers={"authorization": "Bearer x"}) as mastra:
        assert_type(mastra, mx.MastraClient)
        agent = mastra.agent("cook")
        assert_type(agent.stream("Pasta?", schema=Recipe), mx.MastraModelOutput[Recipe])
        assert_type(agent.stream("Pasta?", schema=Recipe, client_tools=[weather]).object, mx.View[Recipe])
        assert_type(agent.stream("Pasta?", schema=list[Recipe]).element_stream, mx.View[Recipe])
        assert_type(agent.stream("Pasta?", schema=TypeAdapter(City)), mx.MastraModelOutput[City])
        assert_type(agent.stream([{"role": "user", "content": "Pasta?"}], max_steps=3).text, mx.View[str])
        assert_type(agent.until_idle("Research", memory={"thread": "t"}).turns, mx.View[mx.MastraModelOutput[Any]])
        assert_type(agent.network("Plan"), mx.NetworkRunOutput)
        assert_type(agent.approve_tool_call("run", "call").text.run(), str)
        assert_type(agent.resume_stream({"ok": True}, run_id="run"), mx.MastraModelOutput[Any])
        assert_type(agent.observe("run", 3), mx.MastraModelOutput[Any])
        assert_type(agent.details().run(), dict[str, Any])
        assert_type(mastra.workflow("plan").create_run(), mx.View[str])


# ---- doors and errors ------------------------------------------------------------------------------------------------


async def relaying() -> None:
    async for data in mx.relay.sse(output, last_event_id="3"):
        assert_type(data, bytes)
    for line in mx.relay.jsonl(output):
        assert_type(line, bytes)
    mx.jupyter.watch(output)


def failures() -> None:
    try:
        output.object.run()
    except mx.OutputValidationError as error:
        assert_type(error.errors, tuple[str, ...])
        assert_type(error.index, int | None)
    except mx.AgentError as error:
        assert_type(error.code, str | None)
        assert_type(error.is_retryable, bool | None)
    except mx.ChunkDecodeError as error:
        assert_type(error.line, int | None)
    except mx.SourceError as error:
        assert_type(error.status, int | None)
    except (mx.StreamDisposed, mx.NoValueError, mx.BlockingCallError, mx.MastraRxError) as error:
        assert_type(error.partial, Any)
