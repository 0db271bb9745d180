"""The libraries of the `jupyter` extra, imported when they are first used."""

from __future__ import annotations

import importlib
from typing import Any


def needed(module: str, what: str) -> Any:
    """The module, or an error that says what to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        library = module.partition(".")[0]
        raise ModuleNotFoundError(
            f'{what} needs {library}: pip install "mastra-rx[jupyter]"', name=error.name
        ) from None
