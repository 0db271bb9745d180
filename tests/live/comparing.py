"""Our views of a run against what the server's own MastraModelOutput resolved to, read after the end of the run.

Some differences are there by nature:

usage       where no step reported any, the class has undefined, the wire's `finish` says 0
errors      a run that failed makes every value raise (D4); the class resolves most of them
tripwire    the class leaves the status at `running`
reasoning   is a text here, the chunks are in `reasoning_parts` (D9)
steps       a resumed run's first steps came in an earlier stream
"""

from __future__ import annotations

import re
from typing import Any

import pytest

import mastra_rx as mx
from tests.live.conftest import MastraServer
from tests.test_conformance import VALUES as COMPARED

VALUES = {theirs: ours for theirs, ours in COMPARED.items() if theirs not in ("request", "response")}

STEP_KEYS = ("stepType", "text", "finishReason", "reasoningText", "usage", "warnings", "tripwire")


def assert_same(
    mastra: MastraServer, output: mx.MastraModelOutput[Any], *differing: str, segment: int | None = None
) -> dict[str, Any]:
    """Every view equals the server's; `differing` are the views that are known not to. Gives the server's."""
    run_id = output.run_id
    assert run_id is not None
    theirs = mastra.views(run_id, segment)
    failed = []
    for name, ours in VALUES.items():
        value = mx.to_wire(getattr(output, ours).run())
        expected = settled(theirs["promises"][name])
        if name == "steps":
            value = [step(one) for one in value]
        if name.lower().endswith("usage") and not any(count for key, count in (expected or {}).items() if key != "raw"):
            value, expected = without_zeros(value), without_zeros(expected or {})
        if (value == expected) is (name in differing):
            failed.append((name, value, expected))
    assert not failed, "\n".join(f"{name}: ours {ours}\n  Mastra's {theirs}" for name, ours, theirs in failed)
    if "status" not in differing:
        assert output.status == theirs["status"]
    assert output.used_fallback_value == theirs["usedFallbackValue"]
    assert mx.to_wire(output.tripwire) == known(theirs["tripwire"])
    return theirs


def assert_same_failure(mastra: MastraServer, output: mx.MastraModelOutput[Any]) -> dict[str, Any]:
    """The run failed, here and there, for the same reason and with the same text so far (D4)."""
    assert output.run_id is not None
    theirs = mastra.views(output.run_id)
    error = output.error
    assert isinstance(error, mx.AgentError)
    told = theirs["error"]
    assert (output.status, theirs["status"]) == ("failed", "failed")
    assert {key: mx.to_wire(error).get(key) for key in told} == told
    for ours in VALUES.values():
        with pytest.raises(mx.AgentError, match=re.escape(told["message"])):
            getattr(output, ours).run()
    full = output.get_full_output().run()
    assert full.text == settled(theirs["promises"]["text"])
    assert error.partial is full
    return theirs


def settled(promise: dict[str, Any]) -> Any:
    """What a promise resolved to; None for undefined."""
    assert promise["status"] == "resolved", promise
    return known(promise.get("value"))


def known(value: Any) -> Any:
    """Without what is undefined, as it would come over the wire."""
    if isinstance(value, dict):
        if value.get("$undefined"):
            return None
        return {key: known(item) for key, item in value.items() if not _undefined(item)}
    return [known(item) for item in value] if isinstance(value, list) else value


def _undefined(value: Any) -> bool:
    return isinstance(value, dict) and bool(value.get("$undefined"))


def step(ours: dict[str, Any]) -> dict[str, Any]:
    """A step as the server sums it up."""
    summary = {key: ours.get(key) for key in STEP_KEYS}
    summary["toolCalls"] = [call["payload"] for call in ours["toolCalls"]]
    summary["toolResults"] = [result["payload"] for result in ours["toolResults"]]
    return {key: value for key, value in summary.items() if value is not None}


def without_zeros(usage: dict[str, Any]) -> dict[str, Any]:
    return {key: count for key, count in usage.items() if count}
