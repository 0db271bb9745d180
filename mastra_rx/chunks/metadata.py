"""Metadata and special chunks (ChunkType reference; is-task-complete from Mastra 1.71.0)."""

from __future__ import annotations

from typing import Literal

from .base import BaseChunk, Json, JsonObject, Wire, wire


@wire
class ResponseMetadataPayload(Wire):
    signature: str | None = None


@wire
class ResponseMetadataChunk(BaseChunk):
    """What the provider tells about its response; only durable agents stream it."""

    type: Literal["response-metadata"] = "response-metadata"
    payload: ResponseMetadataPayload | None = None


@wire
class WatchPayload(Wire):
    workflow_state: JsonObject | None = None
    event_timestamp: Json = None


@wire
class WatchChunk(BaseChunk):
    """Monitoring data."""

    type: Literal["watch"] = "watch"
    payload: WatchPayload | None = None


@wire
class GoalPayload(Wire):
    objective: str | None = None
    iteration: int | None = None
    """Evaluations used so far."""
    max_runs: int | None = None
    passed: bool | None = None
    status: str | None = None
    """`active`, `paused` or `done`."""
    results: list[Json] | None = None
    reason: str | None = None
    paused_reason: str | None = None
    waiting_for_user: bool | None = None
    judge_failed: bool | None = None
    duration: float | None = None
    """Milliseconds."""
    timed_out: bool | None = None
    max_runs_reached: bool | None = None
    suppress_feedback: bool | None = None
    should_continue: bool | None = None
    """True: the work so far is judged not enough, the values of the run start anew."""
    pending: bool | None = None
    activity: list[Json] | None = None


@wire
class GoalChunk(BaseChunk):
    """The evaluation of a goal."""

    type: Literal["goal"] = "goal"
    payload: GoalPayload


@wire
class IsTaskCompletePayload(Wire):
    iteration: int | None = None
    passed: bool | None = None
    results: list[Json] | None = None
    duration: float | None = None
    """Milliseconds."""
    timed_out: bool | None = None
    reason: str | None = None
    max_iteration_reached: bool | None = None
    suppress_feedback: bool | None = None


@wire
class IsTaskCompleteChunk(BaseChunk):
    """A completion check."""

    type: Literal["is-task-complete"] = "is-task-complete"
    payload: IsTaskCompletePayload


@wire
class TripwirePayload(Wire):
    reason: str | None = None
    retry: bool | None = None
    metadata: Json = None
    processor_id: str | None = None


@wire
class TripwireChunk(BaseChunk):
    """A processor blocked the run; nothing comes after it."""

    type: Literal["tripwire"] = "tripwire"
    payload: TripwirePayload | None = None
