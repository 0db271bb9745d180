"""A snapshot as HTML: pure, escaped, light and dark.

snapshot_html(snapshot)                       what a cell shows
snapshot_html(snapshot, live=True)            the same, bounded: fit to be painted many times a second
snapshot_text(snapshot)                       the same in a few lines of plain text
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..chunks.wire import to_wire
from ..errors import StreamDisposed

if TYPE_CHECKING:
    from ..operators.snapshots import FilePart, ObjectPart, Snapshot, SourcePart, TextPart
    from ..operators.tool_runs import ToolRun

LIVE_CHARACTERS = 8_000
"""Of each text, while the run comes: the newest."""

LIVE_PARTS = 60
"""Parts shown while the run comes: the newest."""

CHARACTERS = 200_000
"""Of each text, once the run is over."""

LINE = 160
"""Characters of a value that are shown on a line; longer ones fold."""

IMAGE_BYTES = 2_000_000
_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

_LIGHT = {
    "ink": "#1f2328",
    "dim": "#656d76",
    "line": "#d5dae0",
    "soft": "#f4f6f8",
    "blue": "#0a5bc4",
    "green": "#17742f",
    "amber": "#8a5a00",
    "red": "#c01f2b",
}
_DARK = {
    "ink": "#e4e8ee",
    "dim": "#98a2ae",
    "line": "#3b424b",
    "soft": "#1d232a",
    "blue": "#78b4ff",
    "green": "#5fcf7c",
    "amber": "#e4b043",
    "red": "#ff8178",
}


def _colors(selectors: str, palette: Mapping[str, str]) -> str:
    return f"{selectors}{{{''.join(f'--mxc-{name}:{color};' for name, color in palette.items())}}}"


# The system's choice counts where the page says nothing; JupyterLab, VS Code and Colab say theirs there.
STYLE = "".join(
    (
        _colors(".mxc", _LIGHT),
        f"@media (prefers-color-scheme:dark){{{_colors('.mxc', _DARK)}}}",
        _colors("[data-jp-theme-light=true] .mxc,.vscode-light .mxc,html[theme=light] .mxc,.mxc.mxc-light", _LIGHT),
        _colors("[data-jp-theme-light=false] .mxc,.vscode-dark .mxc,html[theme=dark] .mxc,.mxc.mxc-dark", _DARK),
        (Path(__file__).parent / "style.css").read_text("utf-8"),
    )
)

_STATUS = {
    "running": ("●", "running", "blue"),
    "success": ("✓", "finished", "green"),
    "failed": ("✗", "failed", "red"),
    "canceled": ("■", "canceled", "amber"),
    "suspended": ("‖", "suspended", "amber"),
}

_TOOL = {
    "input-streaming": ("…", "arguments are coming", "dim"),
    "input-available": ("●", "running", "blue"),
    "approval-requested": ("‖", "waits for approval", "amber"),
    "suspended": ("‖", "suspended itself", "amber"),
    "background": ("↗", "in the background", "blue"),
    "output-available": ("✓", "done", "green"),
    "output-error": ("✗", "failed", "red"),
    "output-denied": ("✗", "denied", "amber"),
    "unresolved": ("?", "no result", "amber"),
}


def snapshot_html(
    snapshot: Snapshot, *, error: Exception | None = None, live: bool = False, note: str | None = None
) -> str:
    """The state of a run as an HTML block that brings its own style.

    `error` is why the stream ended, where the snapshot does not know it. `live` bounds what is shown, so that a cell
    can be painted many times a second however long the run is. `note` stands in the head.

    >>> import mastra_rx as mx
    >>> output = mx.MastraModelOutput(mx.from_jsonl(mx.recording("tools")))
    >>> "21.5 degrees" in snapshot_html(output.snapshots.run())
    True
    """
    error = error or snapshot.error
    body = "".join((*_parts(snapshot, live), *_ending(snapshot, error)))
    if not body:
        body = (
            '<div class="mxc-note">nothing has come yet</div>' if live else '<div class="mxc-note">nothing came</div>'
        )
    return (
        f'<div class="mxc tex2jax_ignore mathjax_ignore"><style>{STYLE}</style>'
        f'<div class="mxc-head">{_head(snapshot, error, note)}</div><div class="mxc-body">{body}</div></div>'
    )


def snapshot_text(snapshot: Snapshot, *, error: Exception | None = None, note: str | None = None) -> str:
    """The state of a run as plain text, for places that show no HTML."""
    error = error or snapshot.error
    lines = [" · ".join((_standing(snapshot, error)[1], *_counts(snapshot), *([note] if note else [])))]
    for part in snapshot.parts:
        if part.kind == "tool":
            run: ToolRun = part.run
            result = f" -> {_json(run.result)}" if run.state == "output-available" else ""
            lines.append(f"[{run.tool_name or run.tool_call_id}: {_TOOL[run.state][1]}] {_arguments(run)}{result}")
        elif part.kind == "object":
            lines.append(_json(part.value))
        elif part.kind == "text" and part.text and not (_is_json(part.text) and snapshot.object is not None):
            lines.append(part.text)
    if error is not None:
        lines.append(f"{type(error).__name__}: {error}")
    return _whole("\n".join(lines))


# ---- the head --------------------------------------------------------------------------------------------------------


def _standing(snapshot: Snapshot, error: Exception | None) -> tuple[str, str, str]:
    if isinstance(error, StreamDisposed):
        return "■", "disposed", "amber"
    if error is not None:
        return _STATUS["failed"]
    if snapshot.tripwire is not None:
        return "■", "blocked", "amber"
    return _STATUS[snapshot.status]


def _head(snapshot: Snapshot, error: Exception | None, note: str | None) -> str:
    mark, words, color = _standing(snapshot, error)
    items = [
        f'<b class="mxc-{color}">{mark} {words}</b>',
        *(f"<span>{_esc(item)}</span>" for item in _counts(snapshot)),
    ]
    if note:
        items.append(f'<span class="mxc-amber">{_esc(note)}</span>')
    if snapshot.run_id:
        items.append(f'<span class="mxc-id">{_esc(snapshot.run_id)}</span>')
    return "".join(items)


def _counts(snapshot: Snapshot) -> Iterator[str]:
    """How far the run is: the step, which tools run, the tokens, why it ended."""
    if snapshot.step:
        yield f"step {snapshot.step}" if snapshot.status == "running" else _count(snapshot.step, "step")
    running = [run.tool_name or run.tool_call_id for run in snapshot.tool_runs if run.state == "input-available"]
    if running:
        more = f" and {len(running) - 3} more" if len(running) > 3 else ""
        yield f"running {', '.join(running[:3])}{more}"
    usage = snapshot.usage
    total = usage.total_tokens
    if total is None and not (usage.input_tokens is None and usage.output_tokens is None):
        total = (usage.input_tokens or 0) + (usage.output_tokens or 0)
    if total is not None:
        yield _count(total, "token")
    if snapshot.status == "success" and snapshot.finish_reason != "stop" and snapshot.tripwire is None:
        yield snapshot.finish_reason or "no finish reason"


def _count(number: int | float, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# ---- the parts -------------------------------------------------------------------------------------------------------


def _parts(snapshot: Snapshot, live: bool) -> Iterator[str]:
    parts = snapshot.parts
    if live and len(parts) > LIVE_PARTS:
        yield f'<div class="mxc-note">{_count(len(parts) - LIVE_PARTS, "part")} before</div>'
        parts = parts[-LIVE_PARTS:]
    limit = LIVE_CHARACTERS if live else CHARACTERS
    growing = parts[-1] if parts and snapshot.status == "running" and live else None
    has_object = any(part.kind == "object" for part in parts)
    for part in parts:
        if part.kind == "text" and has_object and _is_json(part.text):
            yield _folded("text", "the text it was read from", part.text[-limit:])
        elif part.kind in ("text", "reasoning"):
            yield _text(part, limit, part is growing)
        elif part.kind == "tool":
            yield _tool(part.run, limit)
        elif part.kind == "object":
            yield _object(part, limit)
        elif part.kind == "source":
            yield _source(part)
        elif part.kind == "file":
            yield _file(part)
        elif part.kind == "data":
            label = f'<span class="mxc-dim">{_esc(part.type)}</span>'
            yield f'<div class="mxc-note">{_value(part.data, limit, f"data {part.id}", label)}</div>'


def _text(part: TextPart, limit: int, growing: bool) -> str:
    text = part.text
    if not text:
        return ""
    cursor = " mxc-more" if growing and not part.is_complete else ""
    return f'<div class="mxc-{part.kind}{cursor}">{_cut(text, limit)}</div>'


def _tool(run: ToolRun, limit: int) -> str:
    mark, words, color = _TOOL[run.state]
    key = run.tool_call_id
    head = f"<b>{_esc(run.tool_name or run.tool_call_id)}</b>"
    if run.state == "input-streaming" or (run.args is None and run.args_text):
        arguments = f"<code>{_cut(run.args_text, LINE)}</code>"
    else:
        arguments = "" if run.args is None else _value(run.args, limit, f"{key} arguments")
    state = f'<span class="mxc-state mxc-{color}">{mark} {words}</span>'
    call = f'<div class="mxc-call">{head}<div>{arguments}</div>{state}</div>'
    return f'<div class="mxc-tool mxc-{color}">{call}{"".join(_outcome(run, limit, key))}</div>'


def _outcome(run: ToolRun, limit: int, key: str) -> Iterator[str]:
    """What came of a call, or what the running tool lets out."""
    inner = _inner_text(run.output)
    if inner and run.state != "output-available":
        yield f'<div class="mxc-reasoning">{_cut(inner, min(limit, 2_000))}</div>'
    if run.state == "output-available":
        yield f"<div>{_value(run.result, limit, f'{key} result', _ARROW)}</div>"
    suspended = getattr(run.suspension, "suspend_payload", None)
    if run.state == "suspended" and suspended is not None:
        yield f"<div>{_value(suspended, limit, f'{key} suspension', _ARROW)}</div>"
    if run.error is not None:
        yield f'<div class="mxc-red">{_cut(str(run.error), 2_000)}</div>'
    if run.task_id is not None:
        yield f'<div class="mxc-note">task {_esc(run.task_id)}</div>'


_ARROW = '<span class="mxc-dim">→</span>'


def _inner_text(output: Sequence[Any]) -> str:
    """What a tool let out: the text of an agent that it runs, else the last thing it said."""
    newest = [cast("Mapping[str, Any]", item) for item in output[-200:] if isinstance(item, Mapping)]
    payloads = [
        cast("Mapping[str, Any]", item.get("payload") or {}) for item in newest if item.get("type") == "text-delta"
    ]
    texts = [str(payload.get("text") or "") for payload in payloads]
    if texts:
        return "".join(texts)
    if not output:
        return ""
    last = output[-1]
    return "" if isinstance(last, Mapping) and "type" in last else _json(last)[:LINE]


def _object(part: ObjectPart, limit: int) -> str:
    pretty = json.dumps(_plain(part.value), ensure_ascii=False, indent=2)
    return f'<pre class="mxc-object">{_cut(pretty, limit)}</pre>'


def _source(part: SourcePart) -> str:
    source = part.source
    title = _esc(source.title or source.filename or source.url or source.id or "?")
    url = source.url or ""
    if url.startswith(("https://", "http://")):
        title = f'<a href="{_esc(url)}" target="_blank" rel="noopener noreferrer">{title}</a>'
    return f'<div class="mxc-note">source {title}</div>'


def _file(part: FilePart) -> str:
    file = part.file
    data = file.data
    size = _count(len(data), "byte" if isinstance(data, bytes) else "character")
    about = " · ".join(_esc(item) for item in (file.filename, file.mime_type, size) if item)
    image = ""
    if isinstance(data, bytes) and file.mime_type in _IMAGES and len(data) <= IMAGE_BYTES:
        url = f"data:{file.mime_type};base64,{base64.b64encode(data).decode()}"
        image = f'<img alt="{_esc(file.filename or "")}" src="{url}">'
    return f'<div class="mxc-note">file {about}{image}</div>'


def _ending(snapshot: Snapshot, error: Exception | None) -> Iterable[str]:
    if snapshot.tripwire is not None:
        yield f'<div class="mxc-error mxc-amber">blocked: {_cut(snapshot.tripwire.reason, 2_000)}</div>'
    if error is not None and not isinstance(error, StreamDisposed):
        yield f'<div class="mxc-error mxc-red"><b>{_esc(type(error).__name__)}</b> {_cut(str(error), 2_000)}</div>'


# ---- values ----------------------------------------------------------------------------------------------------------


def _arguments(run: ToolRun) -> str:
    return run.args_text if run.state == "input-streaming" or run.args is None else _json(run.args)


def _value(value: Any, limit: int, key: str, label: str = "") -> str:
    """A value as JSON: on the line where it is short, else folded."""
    text = _json(value)
    label = f"{label} " if label else ""
    if len(text) <= LINE:
        return f"{label}<code>{_esc(text)}</code>"
    pretty = json.dumps(_plain(value), ensure_ascii=False, indent=2)
    return _folded(key, f"{label}<code>{_esc(text[:LINE])}…</code>", pretty[:limit], is_html=True)


def _folded(key: str, summary: str, text: str, *, is_html: bool = False) -> str:
    """`data-key` tells a page that paints again which folds were open."""
    about = summary if is_html else f'<span class="mxc-note">{_esc(summary)} ({_count(len(text), "character")})</span>'
    return f'<details data-key="{_esc(key)}"><summary>{about}</summary><pre>{_esc(text)}</pre></details>'


def _is_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[", "`")


def _json(value: Any) -> str:
    return value if isinstance(value, str) and len(value) > LINE else json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    try:
        plain = to_wire(value)
        json.dumps(plain)
    except (TypeError, ValueError, RecursionError):
        return repr(value)
    return plain


def _cut(text: str, limit: int) -> str:
    """The newest characters of a text, escaped, and how many came before them."""
    if len(text) <= limit:
        return _esc(text)
    return f'<span class="mxc-note">… {_count(len(text) - limit, "character")} before …</span>\n{_esc(text[-limit:])}'


def _esc(text: str) -> str:
    return escape(_whole(text))


def _whole(text: str) -> str:
    """Half an emoji cannot be encoded."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
