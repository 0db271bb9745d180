"""Every recording through this library equals what the real class gave, or the difference has a number.

`replay` is the real class with every promise accessed before the first chunk, `replayLazy` with every promise accessed
after the end. Where the two differ, a value has two answers there and one here: the one of all that came (D4).
"""

from __future__ import annotations

from typing import Any

import pytest

import mastra_rx as mx
from tests.conftest import Recording, recordings

VALUES = {
    "text": "text",
    "object": "object",
    "reasoning": "reasoning_parts",
    "reasoningText": "reasoning_text",
    "toolCalls": "tool_calls",
    "toolResults": "tool_results",
    "usage": "usage",
    "totalUsage": "total_usage",
    "finishReason": "finish_reason",
    "steps": "steps",
    "sources": "sources",
    "files": "files",
    "warnings": "warnings",
    "suspendPayload": "suspend_payload",
    "resumeSchema": "resume_schema",
    "providerMetadata": "provider_metadata",
    "request": "request",
    "response": "response",
}
STREAMS = {"textStream": "text_stream", "objectStream": "object_stream", "elementStream": "element_stream"}

NOT_ON_THE_WIRE = """
`content`, `messages`, `rememberedMessages`, `dbMessages` and `uiMessages` come from the server's message list, and the
bodies of requests are stripped by the server (unit-request-response). They are not compared.
"""

# ---- The differences, by recording and view. A view that is not named here must be equal. ----------------------------

ARRAY_TEXT = {"textStream": "D3"}
# The real class threw inside and hung: nothing after that can be compared.
STEP_CRASHED = dict.fromkeys([*VALUES, *STREAMS, "fullStream", "status", "getFullOutput"], "D5")
ALL_VALUES = [name for name in VALUES if name != "object"]

DIFFERENCES: dict[str, dict[str, str]] = {
    "object-array": {"textStream": "D3", "elementStream": "D1"},
    "object-nested": {"objectStream": "D10"},
    "object-char-by-char": {"objectStream": "D10"},
    "object-array-numbers": {"textStream": "D3", "objectStream": "D2", "elementStream": "D2"},
    "object-array-oneshot": ARRAY_TEXT,
    "object-array-strings": ARRAY_TEXT,
    "unit-object-array": {"elementStream": "D1"},
    "unit-object-array-textstream": ARRAY_TEXT,
    "unit-object-array-textstream-none": {"object": "D17"},
    "unit-object-array-textstream-one": ARRAY_TEXT,
    "unit-object-array-textstream-shrink": ARRAY_TEXT,
    "unit-object-array-textstream-error": {"textStream": "D3", "elementStream": "D1"},
    "tool-bad-args": dict.fromkeys(("toolCalls", "steps", "fullStream"), "D6"),
    "unit-tool-synth-badjson": dict.fromkeys(("toolCalls", "steps", "fullStream"), "D6"),
    "unit-usage-missing": {"steps": "D7"},
    "unit-usage-null": dict.fromkeys(("usage", "totalUsage", "steps", "fullStream"), "D7"),
    "unit-usage-strings": dict.fromkeys(("usage", "totalUsage", "steps", "fullStream"), "D7"),
    "unit-tripwire-mid": dict.fromkeys(("reasoning", "reasoningText", "toolCalls"), "D8"),
    "unit-abort-close": dict.fromkeys((*ALL_VALUES, "getFullOutput"), "D4"),
    "unit-error-after-object-result": {"object": "D4"},
    "unit-error-then-finish": {"fullStream": "D4"},
    "unit-finish-then-text": {"text": "D12"},
    "unit-source-error": STEP_CRASHED,
    "unit-finish-no-stepresult": STEP_CRASHED,
    "unit-step-finish-no-metadata": STEP_CRASHED,
    "unit-step-finish-no-output": STEP_CRASHED,
    "unit-text-delta-no-payload": STEP_CRASHED,
    "unit-text-delta-undefined-text": {"steps": "D5", "textStream": "D5", "getFullOutput": "D5"},
    "unit-request-response": {"fullStream": "stripped"},
}


def outcome(view: mx.View[Any]) -> tuple[str, Any]:
    try:
        return "resolved", mx.to_wire(view.run())
    except mx.MastraRxError as error:
        return "rejected", error


def items(view: mx.View[Any]) -> list[Any]:
    got: list[Any] = []
    view.subscribe(lambda item: got.append(mx.to_wire(item)), lambda _: None)
    return got


def without_undefined(value: Any) -> Any:
    """The expected files write undefined as {"$undefined": true}; on the wire it is nothing."""
    if isinstance(value, dict):
        if value.get("$undefined") is True:
            return None
        return {
            key: item
            for key, item in ((k, without_undefined(v)) for k, v in value.items())
            if not undefined(value[key])
        }
    return [without_undefined(item) for item in value] if isinstance(value, list) else value


def undefined(value: Any) -> bool:
    return isinstance(value, dict) and value.get("$undefined") is True


def step_summary(step: dict[str, Any]) -> dict[str, Any]:
    """A step as the expected files summarise it."""
    call_keys, result_keys = ("toolCallId", "toolName", "args"), ("toolCallId", "toolName", "result", "isError")
    summary = {
        **{key: step.get(key) for key in ("stepType", "text", "finishReason", "reasoningText", "usage", "warnings")},
        "reasoning": step["reasoningParts"],
        "tripwire": step.get("tripwire"),
        "toolCalls": [{key: call["payload"].get(key) for key in call_keys} for call in step["toolCalls"]],
        "toolResults": [
            {key: r["payload"][key] for key in result_keys if key in r["payload"]} for r in step["toolResults"]
        ],
        "sources": len(step["sources"]),
        "files": len(step["files"]),
        "responseId": step["response"].get("id"),
        "responseModelId": step["response"].get("modelId"),
        "providerMetadata": step.get("providerMetadata"),
    }
    return {key: value for key, value in summary.items() if value is not None}


class Comparison:
    """What was recorded against what we give, view by view."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.named = DIFFERENCES.get(recording.name, {})
        expected = recording.expected
        self.replays = [expected["replay"], expected.get("replayLazy", expected["replay"])]
        self.failed = expected["replay"]["error"] is not None
        options = expected.get("options") or {}
        self.output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(
            recording.source(), schema=expected.get("schema"), include_raw=bool(options.get("includeRawChunks"))
        )

    def check(self, view: str, ours: Any, theirs: list[Any]) -> None:
        if view in self.named:
            assert ours not in theirs or self.named is STEP_CRASHED, f"{view} no longer differs: take it from the list"
            return
        assert ours in theirs, f"{view}: ours is {str(ours)[:500]}, Mastra's {str(theirs)[:500]}"


@pytest.mark.parametrize("recording", [r for r in recordings() if r.is_agent_run], ids=str)
def test_every_view_equals_mastra(recording: Recording) -> None:
    it = Comparison(recording)
    full = items(it.output.full_stream)
    it.check("fullStream", full, [without_undefined(recording.expected.get("fullStreamOut") or recording.wire)])

    for theirs, ours in STREAMS.items():
        it.check(theirs, items(getattr(it.output, ours)), [without_undefined(r[theirs]) for r in it.replays])

    for theirs, ours in VALUES.items():
        status, value = outcome(getattr(it.output, ours))
        if it.failed:  # D4: one outcome for every value of a run that failed
            assert (status, type(value)) == ("rejected", mx.AgentError), theirs
            assert str(value) == it.replays[0]["promises"]["text"]["error"]["message"]
            continue
        if theirs == "steps" and status == "resolved":
            value = [step_summary(step) for step in value]
        answers = [_answer(replay["promises"][theirs]) for replay in it.replays]
        it.check(theirs, (status, value if status == "resolved" else None), answers)

    it.check("status", it.output.status, [r["status"] for r in it.replays])
    it.check("tripwire", mx.to_wire(it.output.tripwire), [without_undefined(r["tripwire"]) for r in it.replays])
    it.check("usedFallbackValue", it.output.used_fallback_value, [r["usedFallbackValue"] for r in it.replays])
    _check_full_output(it)


def _answer(promise: dict[str, Any]) -> tuple[str, Any]:
    if promise["status"] != "resolved":
        return promise["status"], None
    value = without_undefined(promise.get("value"))
    return "resolved", value


def _check_full_output(it: Comparison) -> None:
    full = it.output.get_full_output().run()
    theirs = [without_undefined(replay["getFullOutput"]) for replay in it.replays]
    resolved = [(full["text"], full.get("finishReason")) for full in theirs if full["status"] == "resolved"]
    if resolved:
        it.check("getFullOutput", (full.text, full.finish_reason), resolved)
    elif "getFullOutput" not in it.named:
        assert full.error is not None


@pytest.mark.parametrize("recording", [r for r in recordings() if r.is_agent_run], ids=str)
def test_chunk_by_chunk_as_the_timeline_says(recording: Recording) -> None:
    """What each chunk brings to the streams, and the status it leaves."""
    named = DIFFERENCES.get(recording.name, {})
    replay = recording.expected.get("replayLazy", recording.expected["replay"])
    timeline = recording.expected["replay"].get("timeline")
    if timeline is None:
        timeline = []  # long recordings have none; their streams are compared whole
    expected = [
        (at, view, without_undefined(value))
        for at, view, value in timeline
        if view in ("text", "object") and f"{view}Stream" not in named and at < recording.expected["chunkCount"]
    ]
    statuses = dict(replay["statusTimeline"])

    got: list[tuple[int, str, Any]] = []
    seen: dict[int, str] = {}
    feed: Any = subject()
    output: mx.MastraModelOutput[Any] = mx.MastraModelOutput(feed, schema=recording.expected.get("schema"))
    at = -1
    for view in ("text", "object"):  # elements come when they are complete (D1)
        stream = getattr(output, f"{view}_stream")
        stream.subscribe(lambda item, view=view: got.append((at, view, mx.to_wire(item))), lambda _: None)
    seen[-1] = output.status
    for at, line in enumerate(recording.lines):  # read by the callbacks
        feed.on_next(line)
        if output.status != seen[max(seen)]:
            seen[at] = output.status
    watched = {view for _, view, _ in expected}
    assert [entry for entry in got if entry[1] in watched and f"{entry[1]}Stream" not in named] == expected
    if "status" not in named:
        assert seen == statuses


def subject() -> Any:
    from reactivex.subject import Subject

    return Subject()


@pytest.mark.parametrize("recording", recordings(), ids=str)
def test_every_chunk_comes_back_as_it_came(recording: Recording) -> None:
    for line, wire in zip(recording.lines, recording.wire, strict=True):
        assert mx.to_wire(mx.parse_chunk(line)) == wire


def test_no_recording_is_left_out_and_every_named_difference_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    agent_runs = [recording for recording in recordings() if recording.is_agent_run]
    others = len(recordings()) - len(agent_runs)
    unknown = set(DIFFERENCES) - {recording.name for recording in recordings()}
    assert not unknown, f"differences of recordings that are not there: {unknown}"
    numbers = sorted({number for views in DIFFERENCES.values() for number in views.values()})
    count = sum(len(views) for views in DIFFERENCES.values())
    with capsys.disabled():
        print(
            f"\n{len(recordings())} recordings: {len(agent_runs)} agent runs compared view by view, {others} others "
            f"(workflows, networks, until idle) in their own tests; {count} views of {len(DIFFERENCES)} recordings "
            f"differ by name: {', '.join(numbers)}"
        )
    assert count
