"""The commands and their exit codes.

0    the run came to an end of its own: finished, suspended, aborted or blocked
1    it failed: an `error` chunk, or it broke off
2    what was to be played is broken, is not there, or cannot be read
130  Ctrl-C
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from reactivex import operators as rx_ops
from rich.console import Console
from rich.text import Text

from ..chunks.wire import to_wire
from ..errors import MastraRxError, SourceError, StreamInterrupted
from ..operators.full_output import FullOutput
from ..output import MastraModelOutput
from ..recordings import RECORDINGS, recording
from ..sources import from_jsonl
from ..sources import record as write_recording
from ..timeline import timeline_page, timeline_svg
from ..view import as_view
from . import opening, show, summary
from .words import clean

FAILED, BROKEN, INTERRUPTED, TERMINATED = 1, 2, 130, 143

app = typer.Typer(
    help="Play and inspect runs of Mastra agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

What = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME | FILE | - | URL]",
        help="A bundled recording, a file (JSON Lines, server-sent events or records), - for standard input, "
        "or an agent: http://HOST/api/agents/ID with --prompt.",
        show_default=opening.DEFAULT,
    ),
]
Speed = Annotated[float, typer.Option(metavar="X", help="2 is twice as fast as recorded, 0.5 half as fast.")]
Prompt = Annotated[str | None, typer.Option(metavar="TEXT", help="What to ask the agent at a URL.")]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON, with the wire's names.")]


def run() -> None:
    """Run the command that the command line asks for."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character shows `?` and goes on
    signal.signal(signal.SIGTERM, _terminate)
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_OneLine("mastra-rx: %(message)s"))
    app()


def _terminate(*_: object) -> None:
    sys.exit(TERMINATED)  # unwinds, so that the cursor comes back


class _OneLine(logging.Formatter):
    """What the library logs, a line each; only a traceback keeps its lines."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return text if record.exc_info else " ".join(text.split())


@app.command()
def play(what: What = None, speed: Speed = 1.0, prompt: Prompt = None) -> None:
    """Show a run as it happens.

    Recorded times are kept; bundled recordings, which have none, are played at a pleasant pace; any other file without
    times is played as fast as can be. Piped, the output is plain text.
    """
    if not speed > 0:
        raise typer.BadParameter(f"{speed} is not above 0", param_hint="--speed")
    with _exit_codes(what):
        _end(show.play(opening.opened(what, speed, prompt), _console()), what)


@app.command()
def record(
    url: Annotated[str, typer.Argument(metavar="URL", help="An agent: http://HOST/api/agents/ID")],
    prompt: Annotated[str, typer.Option(metavar="TEXT", help="What to ask the agent.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where to write the recording.")],
) -> None:
    """Record a run of an agent, with the times at which its chunks come, and show it meanwhile."""
    with _exit_codes(url):
        with MastraModelOutput(opening.asked(url, prompt)) as output:
            recording_of = write_recording(output.full_stream, out)
            full = show.play(output.full_stream, _console())
            recording_of.dispose()
        _end(full, url)


@app.command()
def timeline(
    what: What = None,
    prompt: Prompt = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="An .html page to walk through, or an .svg picture.")
    ] = Path("run.html"),
) -> None:
    """Draw a run: one self-contained page with its timeline, every view at each chunk, and the raw chunks."""
    with _exit_codes(what):
        if out.suffix.lower() not in (".html", ".htm", ".svg"):
            raise typer.BadParameter(f"{out} is neither an .html page nor an .svg picture", param_hint="--out")
        name = opening.DEFAULT if what is None else what
        times, chunks, failure = opening.timed(name, prompt)
        if failure is not None and not chunks:
            raise failure
        draw = timeline_svg if out.suffix.lower() == ".svg" else partial(timeline_page, title=Path(name).name)
        try:
            out.write_text(draw(chunks, times=times), "utf-8")
        except OSError as error:
            raise opening.NothingToOpen(f"cannot write {out}: {error.strerror or error}") from None
        _console().print(f"{out}: {len(chunks)} chunks", soft_wrap=True)
        if failure is not None:
            raise failure


@app.command()
def views(what: What = None, prompt: Prompt = None, as_json: AsJson = False) -> None:
    """Print everything a run came to."""
    with _exit_codes(what):
        pieces: list[str] = []
        with MastraModelOutput(opening.opened(what, prompt=prompt)) as output:
            output.text_stream.subscribe(pieces.append, lambda _: None)
            full = output.get_full_output().run()
        if as_json:
            _print_json(to_wire(full))
        else:  # the text of a step that broke off is not in the full output
            summary.show(full, _console(), text=full.text if full.error is None else "".join(pieces))
        _end(full, what)


@app.command()
def recordings() -> None:
    """List the bundled recordings."""
    with _exit_codes(None):
        rows = [(name, what, _count_of(name)) for name, what in RECORDINGS.items()]
        names, whats = max(map(len, RECORDINGS)), max(map(len, RECORDINGS.values()))
        console = _console()
        for name, what, count in rows:
            row = Text.assemble(
                (name.ljust(names), "bold cyan"), f"  {what.ljust(whats)}  ", (f"{count:>3} chunks", "dim")
            )
            console.print(row, soft_wrap=True)


def _count_of(name: str) -> int:
    return as_view(from_jsonl(recording(name)).pipe(rx_ops.count())).run()


def _console() -> Console:
    """Standard output; without escape codes where it is no terminal, whatever the environment says."""
    force = None if sys.stdout.isatty() else False
    return Console(force_terminal=force, markup=False, emoji=False, highlight=False)


def _print_json(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2)
    sys.stdout.write(text + "\n")


def _end(full: FullOutput[Any], what: str | None) -> None:
    """Say why the run failed, if it did, and exit so."""
    if full.error is None:
        return
    sys.stdout.flush()
    if isinstance(full.error, SourceError) and not isinstance(full.error, StreamInterrupted):
        _complain(f"{'standard input' if what == '-' else what}: {full.error}")
        raise typer.Exit(BROKEN)
    _complain(str(full.error))
    raise typer.Exit(FAILED)


def _complain(message: str) -> None:
    line = Text.assemble(("mastra-rx: ", "bold red"), " ".join(clean(message).split()))
    force = None if sys.stderr.isatty() else False
    Console(stderr=True, force_terminal=force).print(line, soft_wrap=True, highlight=False, emoji=False)


@contextmanager
def _exit_codes(what: str | None) -> Generator[None]:
    try:
        yield
        sys.stdout.flush()
    except opening.NothingToOpen as error:
        _complain(str(error))
        raise typer.Exit(BROKEN) from None
    except MastraRxError as error:
        _complain(f"{what}: {error}")
        raise typer.Exit(BROKEN) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:  # `| head` has seen enough; nothing is left to be flushed into it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(FAILED) from None
