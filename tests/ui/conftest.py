"""Marks for tests that need a part which is not everywhere, and the display that Tk paints on."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

MARKS = {
    "display": "needs an X display, or Xvfb to start one",
    "qt": "needs PySide6, offscreen",
    "textual": "needs Textual",
    "streamlit": "needs Streamlit",
    "browser": "needs Chromium and its driver",
}


def pytest_configure(config: pytest.Config) -> None:
    for name, what in MARKS.items():
        config.addinivalue_line("markers", f"{name}: {what}")


@pytest.fixture(scope="session")
def display() -> Iterator[str]:
    """The name of an X display: the one there is, or Xvfb on a number that it picks."""
    if os.environ.get("DISPLAY"):
        yield os.environ["DISPLAY"]
        return
    xvfb = shutil.which("Xvfb")
    if xvfb is None:
        pytest.skip("there is no display, and no Xvfb to make one")
    read, write = os.pipe()
    command = [xvfb, "-displayfd", str(write), "-screen", "0", "1280x800x24", "-nolisten", "tcp"]
    with subprocess.Popen(command, pass_fds=(write,), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        os.close(write)
        with os.fdopen(read) as answer:
            number = answer.readline().strip()
        try:
            if not number:
                pytest.skip("Xvfb did not start")
            os.environ["DISPLAY"] = f":{number}"
            yield os.environ["DISPLAY"]
        finally:
            os.environ.pop("DISPLAY", None)
            server.terminate()
