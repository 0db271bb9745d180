"""The one event loop of our own, for asynchronous sources that are subscribed where no loop runs."""

from __future__ import annotations

import asyncio
import threading
from functools import cache


@cache
def background_loop() -> asyncio.AbstractEventLoop:
    """A loop that runs on a daemon thread named `mastra_rx`, started at the first use."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="mastra_rx", daemon=True).start()
    return loop


def loop_here() -> asyncio.AbstractEventLoop:
    """The running loop; without one, our own."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return background_loop()
