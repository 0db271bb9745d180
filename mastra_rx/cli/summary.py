"""Everything a run came to, to be read: `mastra-rx views` without `--json`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.text import Text

from ..operators.full_output import FullOutput
from ..operators.tool_pairs import ToolPair
from . import words

_COLUMN = 12


def show(full: FullOutput[Any], console: Console, *, text: str) -> None:
    """Print a row a view, `text` as the text; views that have nothing are left out."""
    for name, value in _rows(full, text):
        first, *others = value.split("\n", allow_blank=True) or [Text("")]
        console.print(Text.assemble((name.ljust(_COLUMN), "bold"), first), soft_wrap=True)
        for line in others:
            console.print(Text.assemble(" " * _COLUMN, line), soft_wrap=True)
    console.print(Text.assemble(("ended".ljust(_COLUMN), "bold"), words.ending(full)), soft_wrap=True)


def _rows(full: FullOutput[Any], text: str) -> Iterator[tuple[str, Text]]:
    if full.run_id:
        yield "run", Text(words.clean(full.run_id))
    if text:
        yield "text", Text(words.clean(text))
    if full.reasoning:
        yield "reasoning", Text(words.clean(full.reasoning), "dim italic")
    if full.object is not None:
        yield "object", words.indented(full.object)
    yield from _listed("tools", [_pair(pair) for pair in full.tool_pairs])
    yield from _listed("steps", [_step(number, step) for number, step in enumerate(full.steps, 1)])
    yield from _listed("sources", [words.source(chunk) for chunk in full.sources])
    yield from _listed("files", [words.file(chunk) for chunk in full.files])
    yield from _listed("warnings", [Text(words.compact(warning), "yellow") for warning in full.warnings])
    if full.suspend_payload is not None:
        yield "suspended", words.highlighted(words.compact(full.suspend_payload))


def _listed(name: str, lines: list[Text]) -> Iterator[tuple[str, Text]]:
    if lines:
        yield name, Text("\n").join(lines)


def _pair(pair: ToolPair) -> Text:
    call = Text.assemble((words.clean(pair.tool_name or pair.tool_call_id), "bold cyan"), " ")
    args = words.highlighted(words.compact(pair.args))
    if pair.state == "result":
        return Text.assemble(call, args, (" → ", "dim"), words.highlighted(words.compact(pair.result)))
    why = "" if pair.error is None else f": {words.clean(str(pair.error))}"
    return Text.assemble(call, args, (f" → {pair.state}{why}", "red" if pair.state == "error" else "yellow"))


def _step(number: int, step: Any) -> Text:
    tokens = words.tokens(step.usage)
    return Text.assemble(
        f"{number}  {words.clean(step.finish_reason or '?')}", (f" · {tokens}" if tokens else "", "dim")
    )
