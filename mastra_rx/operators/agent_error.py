"""From what the wire says of an error to an exception."""

from __future__ import annotations

import json
from typing import Any, cast

from ..errors import AgentError

_MAX_CAUSES = 5


def agent_error(value: Any) -> AgentError:
    """The error of an `error` chunk, by Mastra 1.71.0's rules (semantics 11)."""
    return _error(value, _MAX_CAUSES)


def _error(value: Any, depth: int) -> AgentError:
    if isinstance(value, str) and value:
        return AgentError(value)
    if not isinstance(value, dict | list):
        return AgentError("Unknown error chunk in stream")
    data = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    message = data.get("message")
    if not isinstance(message, str):
        message = _shown(value)
    cause = data.get("cause")
    return AgentError(message, data=data, cause=_error(cause, depth - 1) if cause is not None and depth else None)


def _shown(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if value else "[object Object]"
    except (ValueError, TypeError, RecursionError):
        return "[object Object]"


def tool_error(value: Any) -> AgentError:
    """The error of a `tool-error` chunk, whose message the wire loses: it is in the cause or the details."""
    if not isinstance(value, dict):
        return agent_error(value)
    data = cast("dict[str, Any]", value)
    cause, details = data.get("cause"), data.get("details")
    candidates = [
        data.get("message"),
        cast("dict[str, Any]", details).get("errorMessage") if isinstance(details, dict) else None,
        cast("dict[str, Any]", cause).get("message") if isinstance(cause, dict) else cause,
        data.get("name"),
    ]
    message = next((text for text in candidates if isinstance(text, str) and text), None)
    error = agent_error(data)
    return (
        error if message is None else AgentError(message, data=data, cause=cast("AgentError | None", error.__cause__))
    )
