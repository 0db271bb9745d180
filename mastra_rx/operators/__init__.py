"""Operators on streams of chunks: `Observable[Chunk] -> Observable[X]`.

    from mastra_rx import operators as ops
    output.full_stream.pipe(ops.text_deltas(), rxops.map(str.upper)).subscribe(print)

Each also works alone, on any Observable of chunks. They give what came: an `error` chunk or a missing `finish` is no
failure to them, only the values of an output raise for it. A source that fails ends them with its error.
"""

from .background_tasks import background_tasks
from .collected import files, sources, tool_results
from .deliver_on import deliver_on
from .evaluations import evaluations
from .groups import by_run, by_step, turns
from .nested import nested
from .network import routing_decisions
from .object_result import object
from .objects import elements, objects
from .of_type import of_type
from .reasoning import reasoning, reasoning_parts, reasoning_text
from .snapshots import snapshots
from .steps import steps
from .text import reasoning_deltas, routing_text, text_deltas
from .tool_calls import tool_calls
from .tool_pairs import tool_pairs
from .tool_runs import tool_runs
from .usage import running_usage, usage
from .usage_tree import usage_tree
from .workflow import workflow_steps

# isort: split
from .run import full_output, text  # last: the module `.text` would hide the operator of that name

__all__ = [
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
