"""Runs in notebooks: a live cell, and a panel to pause and scrub in.

    mx.jupyter.watch(output)      a cell that shows the run as it comes, while the next cells run
    mx.jupyter.panel(output)      the same with buttons: pause, scrub through what came, open a tool call

Needs IPython, the panel anywidget too: `pip install "mastra-rx[jupyter]"`. Both are imported when they are first used.
"""

from .live_cell import Watch, watch
from .live_panel import panel
from .render import snapshot_html

__all__ = ["Watch", "panel", "snapshot_html", "watch"]
