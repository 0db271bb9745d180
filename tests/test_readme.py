"""Every block of the README runs, and prints what it says; its tables name what exists."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path

import mastra_rx as mx
from mastra_rx import operators as ops
from tests.client.scripted import HEAD, ScriptedServer, chunked, sse
from tests.conftest import RECORDINGS

README = Path(__file__).parents[1].joinpath("README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_every_python_block_prints_what_it_says() -> None:
    """In order and in one namespace, as a reader would type them; the server is a local one that plays a recording."""
    scope: dict[str, object] = {"__name__": "readme"}
    recorded = map(json.loads, (RECORDINGS / "tool-one.jsonl").read_bytes().splitlines())
    with ScriptedServer([HEAD, chunked(sse(recorded), end=True)]) as server:
        for number, (language, code) in enumerate(BLOCKS):
            if language != "python":
                continue
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(
                    compile(code.replace("http://localhost:4111", server.url), f"README block {number}", "exec"), scope
                )
            following = BLOCKS[number + 1] if number + 1 < len(BLOCKS) else ("", "")
            if following[0] == "text":
                assert printed.getvalue() == following[1]


def test_commands_are_one_line_each() -> None:
    commands = [code for language, code in BLOCKS if language == "sh"]
    assert len(commands) == 2
    assert all(len(code.strip().splitlines()) == 1 for code in commands)
    assert commands[1].rstrip().endswith("&& .venv/bin/pytest")


def test_every_operator_is_in_the_table() -> None:
    section = README.partition("## Operators")[2].partition("\n## ")[0]
    assert set(re.findall(r"`(\w+)`", section)) == set(ops.__all__)


def test_every_difference_has_a_row() -> None:
    assert re.findall(r"^\| (D\d+) \|", README, re.MULTILINE) == [f"D{number}" for number in range(1, 18)]


def test_names_in_the_text_exist() -> None:
    for name in re.findall(r"\bmx\.(\w+)", README):
        assert hasattr(mx, name), name
