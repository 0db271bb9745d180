"""The public names: pinned, importable, documented, and as DESIGN names them; every docstring's example runs."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from typing import Any

import pytest
import reactivex as rx

import mastra_rx as mx
from mastra_rx import errors
from mastra_rx import operators as ops
from mastra_rx.chunks.vocabulary import MODULE_OF
from tests.cases.wire import STREAMS, VALUES

TOP = [
    "AgentError",
    "BackgroundTask",
    "BaseChunk",
    "BlockingCallError",
    "Chunk",
    "ChunkDecodeError",
    "ChunkGroup",
    "Evaluation",
    "FullOutput",
    "MastraClient",
    "MastraModelOutput",
    "MastraRxError",
    "NestedKey",
    "NestedOutput",
    "NetworkFullOutput",
    "NetworkRunOutput",
    "NoValueError",
    "OutputValidationError",
    "PartialJSONError",
    "ReasoningPart",
    "RoutingDecision",
    "RunOutput",
    "SchemaError",
    "SharedStream",
    "Snapshot",
    "SourceError",
    "Step",
    "StreamDisposed",
    "StreamInterrupted",
    "ToolPair",
    "ToolRun",
    "Tripwire",
    "Usage",
    "UsageNode",
    "View",
    "WorkflowFullOutput",
    "WorkflowRunOutput",
    "WorkflowStep",
    "as_view",
    "from_bytes",
    "from_chunks",
    "from_jsonl",
    "jupyter",
    "parse_chunk",
    "record",
    "recording",
    "relay",
    "timeline",
    "to_wire",
    "until_idle",
]

OPERATORS = [
    "background_tasks",
    "by_run",
    "by_step",
    "deliver_on",
    "elements",
    "evaluations",
    "files",
    "full_output",
    "nested",
    "object",
    "objects",
    "of_type",
    "reasoning",
    "reasoning_deltas",
    "reasoning_parts",
    "reasoning_text",
    "routing_decisions",
    "routing_text",
    "running_usage",
    "snapshots",
    "sources",
    "steps",
    "text",
    "text_deltas",
    "tool_calls",
    "tool_pairs",
    "tool_results",
    "tool_runs",
    "turns",
    "usage",
    "usage_tree",
    "workflow_steps",
]

ATTRIBUTES = ["run_id", "trace_id", "status", "error", "tripwire", "used_fallback_value"]


def test_the_names_at_the_top_are_pinned() -> None:
    assert mx.__all__ == TOP


def test_the_operators_are_pinned() -> None:
    assert ops.__all__ == OPERATORS


@pytest.mark.parametrize("name", TOP)
def test_every_name_at_the_top_is_there_and_says_what_it_is(name: str) -> None:
    assert inspect.getdoc(getattr(mx, name))


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_is_a_function_that_says_what_it_does(name: str) -> None:
    operator = getattr(ops, name)
    assert inspect.isfunction(operator), f"ops.{name} is a {type(operator).__name__}"
    assert operator.__doc__


@pytest.mark.parametrize("name", sorted(MODULE_OF))
def test_every_chunk_class_is_there_by_its_name(name: str) -> None:
    assert getattr(mx, name).__name__ == name


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'TextDelta'"):
        mx.TextDelta  # type: ignore[attr-defined]  # noqa: B018


def output() -> mx.MastraModelOutput[Any]:
    return mx.MastraModelOutput(rx.never(), schema=list[int])


@pytest.mark.parametrize("name", [*STREAMS, *VALUES])
def test_streams_and_values_are_views_and_always_the_same_one(name: str) -> None:
    run = output()
    view = getattr(run, name)
    assert isinstance(view, mx.View)
    assert getattr(run, name) is view
    assert repr(view) == f"<View {name}>"


@pytest.mark.parametrize("name", [*STREAMS, *VALUES, *ATTRIBUTES, "get_full_output", "consume_stream", "dispose"])
def test_every_member_of_an_output_says_what_it_is(name: str) -> None:
    assert inspect.getdoc(inspect.getattr_static(mx.MastraModelOutput, name))


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_are_plain_and_can_be_read_before_anything_came(name: str) -> None:
    assert not isinstance(getattr(output(), name), mx.View)


def test_the_signature_of_an_output_is_that_of_the_design() -> None:
    parameters = inspect.signature(mx.MastraModelOutput).parameters
    wanted = {"schema": None, "error_strategy": "strict", "fallback": None, "include_raw": False, "history": None}
    assert list(parameters) == ["source", *wanted]
    assert {name: parameters[name].default for name in wanted} == wanted
    assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in wanted)


def test_the_signatures_of_sources_are_those_of_the_design() -> None:
    assert inspect.signature(mx.from_jsonl).parameters["speed"].default is None
    assert inspect.signature(mx.from_bytes).parameters["framing"].default == "auto"
    assert list(inspect.signature(mx.record).parameters) == ["observable", "path"]
    assert inspect.signature(mx.MastraModelOutput.consume_stream).parameters["on_error"].default is None


# ---- exceptions ------------------------------------------------------------------------------------------------------


def drawn() -> dict[str, tuple[str, str | None]]:
    """The tree of the docstring: name -> (the one above, what it also is)."""
    tree: dict[str, tuple[str, str | None]] = {}
    above = ["MastraRxError"]
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"\s*((?:\|   )*)\+-- (\w+)\s+(.*)", line):
            depth = len(found[1]) // 4 + 1
            also = re.search(r"\(also an? (\w+)\)", found[3])
            tree[found[2]] = (above[depth - 1], also and also[1])
            above[depth:] = [found[2]]
    return tree


def test_the_tree_of_exceptions_is_the_one_that_is_drawn() -> None:
    real = {
        name: (cls.__bases__[0].__name__, cls.__bases__[1].__name__ if len(cls.__bases__) > 1 else None)
        for name, cls in vars(errors).items()
        if isinstance(cls, type) and issubclass(cls, errors.MastraRxError) and cls is not errors.MastraRxError
    }
    assert drawn() == real
    assert errors.MastraRxError.__bases__ == (Exception,)


def test_every_exception_is_public_and_no_other_one_is_defined() -> None:
    assert {"MastraRxError", *drawn()} == {name for name in TOP if name.endswith("Error") or name.startswith("Stream")}
    for module in MODULES:
        if module.startswith("mastra_rx.cli"):
            continue  # the command line has one of its own, which it catches itself
        for name, value in vars(importlib.import_module(module)).items():
            if isinstance(value, type) and issubclass(value, Exception) and value.__module__.startswith("mastra_rx"):
                assert value.__module__ == "mastra_rx.errors" or name.startswith("_"), f"{module}.{name}"


# ---- examples --------------------------------------------------------------------------------------------------------

MODULES = [
    "mastra_rx",
    *(module.name for module in pkgutil.walk_packages(mx.__path__, "mastra_rx.") if "__main__" not in module.name),
]


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_docstrings_run(module: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        pytest.skip(f"an extra is not installed: {error}")
    result = doctest.testmod(found)
    assert result.failed == 0


def test_most_operators_have_an_example_that_runs() -> None:
    with_example = {name for name in OPERATORS if ">>>" in (getattr(ops, name).__doc__ or "")}
    assert {"text_deltas", "text", "objects", "elements", "tool_pairs", "tool_runs", "usage", "steps"} <= with_example
