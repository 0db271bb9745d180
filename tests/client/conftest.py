"""After each test nothing is left: no task, no thread, no connection."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mastra_rx as mx
from mastra_rx.sources.loop import background_loop

Connect = Callable[..., mx.MastraClient]


async def _tasks() -> set[asyncio.Task[Any]]:
    return asyncio.all_tasks() - {asyncio.current_task()}  # type: ignore[arg-type]


def background_tasks() -> list[str]:
    """What still runs on the library's own loop, once that had a moment to end."""
    deadline = time.monotonic() + 3
    while tasks := asyncio.run_coroutine_threadsafe(_tasks(), background_loop()).result(5):
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    return [repr(task) for task in tasks]


def ours(threads: list[threading.Thread]) -> set[threading.Thread]:
    """Threads, but for the pools of `asyncio.to_thread`, which a loop keeps for its next use."""
    return {thread for thread in threads if not thread.name.startswith("asyncio_")}


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    background_tasks()  # the loop's thread is there from now on
    before = ours(threading.enumerate())
    yield
    assert background_tasks() == []
    assert ours(threading.enumerate()) <= before


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Makes clients for plain scripts; they are closed at the end, and nothing of theirs is left on the server."""
    made: list[tuple[mx.MastraClient, Any]] = []

    def make(server: Any, **options: Any) -> mx.MastraClient:
        client = mx.MastraClient(server.url, **{"idle_timeout": 5, "backoff": 0.01, **options})
        made.append((client, server))
        return client

    yield make
    for client, server in made:
        client.close()
        assert server.wait_until_alone()
