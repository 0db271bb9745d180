"""The types that users see: pyright and mypy read `tests/typing/user_code.py`, and pyright the whole package."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
USER_CODE = ROOT / "tests" / "typing" / "user_code.py"


def checked(tool: str, *arguments: str) -> None:
    if importlib.util.find_spec(tool) is None:
        pytest.skip(f"{tool} is not installed")
    command = [sys.executable, "-m", tool, *arguments]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{tool} did not start: it fetches Node.js when it first runs")
    told = done.stdout + done.stderr
    if "nodeenv" in told and "error:" not in done.stdout:
        pytest.skip(f"{tool} could not fetch Node.js: {told.strip().splitlines()[-1]}")
    assert done.returncode == 0, told


def test_pyright_finds_nothing_in_what_users_write_and_in_the_package() -> None:
    checked("pyright", "--pythonpath", sys.executable)  # strict: pyproject.toml says so, and what is checked


def test_mypy_finds_nothing_in_what_users_write() -> None:
    checked("mypy", "--strict", "--follow-imports=silent", "--cache-dir", "/dev/null", str(USER_CODE))
