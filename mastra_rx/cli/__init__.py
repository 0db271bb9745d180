"""The command line, `mastra-rx`: a door to the library for those who sit at a terminal.

argument  ->  opening  ->  show        ->  terminal | plain
                           summary         (words: how each thing reads)

app has the commands and their exit codes. Needs the extra `cli`: `pip install "mastra-rx[cli]"`.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec


def main() -> None:
    """The entry point of `mastra-rx`."""
    missing = [name for name in ("typer", "rich") if find_spec(name) is None]
    if missing:
        sys.exit(f'mastra-rx: the command line needs {" and ".join(missing)}: pip install "mastra-rx[cli]"')
    try:
        from .app import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
