"""How each thing of a run reads, in a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from rich.highlighter import JSONHighlighter
from rich.text import Text

from ..chunks.wire import to_wire
from ..errors import ChunkDecodeError, StreamInterrupted
from ..operators.full_output import FullOutput
from ..operators.steps import Step
from ..operators.tool_runs import ToolRun
from ..operators.usage import Usage

if TYPE_CHECKING:
    from ..chunks import Chunk, FileChunk, SourceChunk

LIMIT = 500
"""Characters of an argument, a result or a note that are shown; `views --json` has all."""

SETTLED = frozenset({"output-available", "output-error", "output-denied", "unresolved"})
"""States of a call after which nothing more is expected."""

_VISIBLE: dict[int, int | str | None] = {
    **{code: 0x2400 + code for code in range(0x20)},
    0x7F: "\u2421",
    **dict.fromkeys([*range(0x80, 0xA0), *range(0xD800, 0xE000)], "\ufffd"),
    ord("\n"): "\n",
    ord("\t"): "    ",
    ord("\r"): None,
}


def clean(text: str) -> str:
    """The text with control characters made visible: what a model writes must not steer the terminal."""
    return text.translate(_VISIBLE)


def compact(value: Any, limit: int = LIMIT) -> str:
    """A value as JSON on one line."""
    text = clean(json.dumps(to_wire(value), ensure_ascii=False))
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"


def indented(value: Any) -> Text:
    """A value as JSON to be read, coloured."""
    return highlighted(clean(json.dumps(to_wire(value), ensure_ascii=False, indent=2)))


def highlighted(text: str) -> Text:
    """JSON text, coloured."""
    colored = Text(text)
    JSONHighlighter().highlight(colored)
    return colored


# ---- tools -----------------------------------------------------------------------------------------------------------

_MARKS = {
    "output-available": ("✓", "green"),
    "output-error": ("✗", "red"),
    "output-denied": ("✗", "yellow"),
    "unresolved": ("?", "yellow"),
    "approval-requested": ("‖", "yellow"),
    "suspended": ("‖", "yellow"),
    "background": ("…", "cyan"),
}


def call_mark(run: ToolRun) -> tuple[str, str]:
    """A sign for where a call stands, and its style."""
    return _MARKS.get(run.state, ("·", "dim"))


def call(run: ToolRun) -> Text:
    """A call: the tool's name and its arguments."""
    if run.state == "input-streaming" or (run.args is None and run.args_text):
        args = Text(clean(run.args_text).replace("\n", " "))
    else:
        args = highlighted("" if run.args is None else compact(run.args))
    return Text.assemble((clean(run.tool_name or run.tool_call_id), "bold cyan"), " ", args)


def outcome(run: ToolRun) -> Text | None:
    """What came of a call; None while nothing did."""
    if run.state == "output-available":
        return Text.assemble(("→ ", "dim"), highlighted(compact(run.result)))
    if run.state == "background":
        return Text(f"→ runs in the background{'' if run.task_id is None else f' as task {run.task_id}'}", "cyan")
    words = {
        "output-error": ("failed", "red"),
        "output-denied": ("denied", "yellow"),
        "unresolved": ("no result", "yellow"),
        "approval-requested": ("waits for approval", "yellow"),
        "suspended": ("suspended itself", "yellow"),
    }.get(run.state)
    if words is None:
        return None
    why = "" if run.error is None else f": {clean(str(run.error))}"
    suspended = getattr(run.suspension, "suspend_payload", None)
    if run.state == "suspended" and suspended is not None:
        why = f": {compact(suspended)}"
    return Text(f"→ {words[0]}{why}", words[1])


def progress(run: ToolRun) -> str:
    """What a running tool let out last."""
    if not run.output:
        return ""
    last = run.output[-1]
    if isinstance(last, Mapping) and "type" in last:
        inner = cast("Mapping[str, Any]", last)
        return inner_text(inner) or str(inner["type"])
    return compact(last, 80)


# ---- what comes along ------------------------------------------------------------------------------------------------


def step(number: int) -> Text:
    """The beginning of a step."""
    return Text(f"step {number}", "dim")


def rejected(step: Step) -> Text | None:
    """That a processor rejected a step; None where none did."""
    if step.tripwire is None:
        return None
    return Text(f"! this step was rejected: {clean(str(step.tripwire.get('reason') or 'no reason given'))}", "yellow")


def source(chunk: SourceChunk) -> Text:
    """A source that the model used."""
    payload = chunk.payload
    about = [part for part in (payload.title, payload.url or payload.filename) if part]
    return Text.assemble(("source ", "dim"), clean(" · ".join(about) or payload.id or "?"))


def file(chunk: FileChunk) -> Text:
    """A file that the model made."""
    payload = chunk.payload
    unit = "bytes" if isinstance(payload.data, bytes) else "characters"
    about = [payload.filename, payload.mime_type, f"{len(payload.data):,} {unit}"]
    return Text.assemble(("file ", "dim"), clean(" · ".join(part for part in about if part)))


_TELLING = ("stepName", "agentId", "workflowId", "primitiveId", "toolName", "name", "id", "taskId", "objective")
_STANDING = ("status", "workflowStatus", "reason", "passed", "isComplete", "error")


def note(chunk: Chunk) -> Text:
    """A chunk of any other type: the type, and what tells most of its payload."""
    kind = str(getattr(chunk, "wire_type", chunk.type))
    wire = cast("dict[str, Any]", to_wire(chunk))
    if getattr(chunk, "error", None) is not None:
        return Text(f"{clean(kind)} (does not fit its type)", "yellow")
    if kind.startswith("data-"):
        return Text.assemble((f"{clean(kind)} ", "dim"), compact(wire.get("data")))
    payload = wire.get("payload")
    payload = cast("dict[str, Any]", payload) if isinstance(payload, dict) else {}
    name = next((payload[key] for key in _TELLING if payload.get(key)), None)
    about = [name, *(payload[key] for key in _STANDING if payload.get(key) is not None)]
    told = [clean(part) if isinstance(part, str) else compact(part, 80) for part in about if part is not None]
    return Text.assemble((f"{clean(kind)} ", "dim"), " · ".join(told))


def inner_text(chunk: Mapping[str, Any]) -> str:
    """The piece of text in an inner run's chunk, as it stands on the wire; `""` where it has none."""
    payload = chunk.get("payload")
    if chunk.get("type") != "text-delta" or not isinstance(payload, Mapping):
        return ""
    text = cast("Mapping[str, Any]", payload).get("text")
    return text if isinstance(text, str) else ""


# ---- the end ---------------------------------------------------------------------------------------------------------


def ending(full: FullOutput[Any]) -> Text:
    """How the run ended and what it took, in one line."""
    how, style = _how(full)
    parts = [
        _counted(len(full.steps), "step"),
        _counted(len(full.tool_pairs), "tool call"),
        tokens(full.total_usage if _is_known(full.usage) else full.usage),
        str(full.response.get("modelId") or ""),
    ]
    return Text.assemble((how, style), (clean("".join(f" · {part}" for part in parts if part)), "dim"))


def _how(full: FullOutput[Any]) -> tuple[str, str]:
    if isinstance(full.error, StreamInterrupted):
        return "✗ interrupted", "red"
    if isinstance(full.error, ChunkDecodeError):
        return "✗ broken", "red"
    if full.error is not None:
        return "✗ failed", "red"
    if full.tripwire is not None:
        by = "" if full.tripwire.processor_id is None else f" by {full.tripwire.processor_id}"
        return clean(f"✗ blocked{by}: {full.tripwire.reason}"), "yellow"
    if full.status == "suspended":
        return "‖ suspended", "yellow"
    reason = full.finish_reason
    if reason is None and full.status in ("running", "success"):
        return "■ ended", ""  # a workflow or a network, whose last line says how
    reason = clean(reason or full.status)
    return (f"✓ {reason}", "green") if reason in ("stop", "tool-calls") else (f"! {reason}", "yellow")


def tokens(usage: Usage) -> str:
    """The counts that are known."""
    parts = [
        f"{count:,} {name}"
        for name, count in (
            ("in", usage.input_tokens),
            ("out", usage.output_tokens),
            ("reasoning", usage.reasoning_tokens),
            ("cached", usage.cached_input_tokens),
        )
        if count is not None
    ]
    if usage.total_tokens is None:
        return f"tokens: {', '.join(parts)}" if parts else ""
    return f"{usage.total_tokens:,} tokens" + (f" ({', '.join(parts)})" if parts else "")


def _is_known(usage: Usage) -> bool:
    return bool(tokens(usage))


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}" if count else ""
