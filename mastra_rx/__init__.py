"""The chunk stream of a Mastra agent as RxPY observables.

source          from_chunks, from_bytes, from_jsonl,        where chunks come from
                until_idle, MastraClient
chunk           parse_chunk, to_wire                        the typed vocabulary of the wire
shared stream   SharedStream                                one subscription, replayed to all
operators       mastra_rx.operators                         text, reasoning, tools, usage, steps, objects
views           View                                        callbacks, async for, for, await, .run()
output          MastraModelOutput, WorkflowRunOutput,       every view of a run
                NetworkRunOutput
screens         jupyter, relay, timeline                    in a notebook, for a web page, as a picture

import mastra_rx as mx
output = mx.MastraModelOutput(mx.from_jsonl("run.jsonl"))
for piece in output.text_stream:
    print(piece, end="")
"""

import importlib
from typing import TYPE_CHECKING, Any

from .chunks.vocabulary import MODULE_OF
from .errors import (
    AgentError,
    BlockingCallError,
    ChunkDecodeError,
    MastraRxError,
    NoValueError,
    OutputValidationError,
    PartialJSONError,
    SchemaError,
    SourceError,
    StreamDisposed,
    StreamInterrupted,
)
from .network_output import NetworkRunOutput
from .operators.background_tasks import BackgroundTask
from .operators.evaluations import Evaluation
from .operators.full_output import FullOutput, Tripwire
from .operators.groups import ChunkGroup
from .operators.nested import NestedKey
from .operators.network import NetworkFullOutput, RoutingDecision
from .operators.reasoning import ReasoningPart
from .operators.snapshots import Snapshot
from .operators.steps import Step
from .operators.tool_pairs import ToolPair
from .operators.tool_runs import ToolRun
from .operators.usage import Usage
from .operators.usage_tree import UsageNode
from .operators.workflow import WorkflowFullOutput, WorkflowStep
from .output import MastraModelOutput, NestedOutput
from .recordings import recording
from .run_output import RunOutput
from .shared_stream import SharedStream
from .sources import from_bytes, from_chunks, from_jsonl, record, until_idle
from .view import View, as_view
from .workflow_output import WorkflowRunOutput

if TYPE_CHECKING:
    from . import jupyter, relay, timeline
    from .chunks import *  # noqa: F403  # every chunk class, by its name
    from .chunks import BaseChunk, Chunk, parse_chunk, to_wire
    from .client import MastraClient


def __getattr__(name: str) -> Any:
    """Chunk classes and the doors are imported when they are first named."""
    if name in ("BaseChunk", "Chunk", "parse_chunk", "to_wire") or name in MODULE_OF:
        from . import chunks

        return getattr(chunks, name)
    if name == "MastraClient":
        from .client import MastraClient

        return MastraClient
    if name in ("jupyter", "relay", "timeline"):
        return importlib.import_module(f".{name}", __name__)
    if name == "__version__":
        from importlib.metadata import version

        return version("mastra-rx")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *MODULE_OF, "__version__", "operators"})


__all__ = [
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
