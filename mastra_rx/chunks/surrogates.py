"""Halves of an emoji.

A provider that cuts its text between two UTF-16 units sends a lone `\\ud83d` at the end of one delta and a lone
`\\ude00` at the start of the next. Python can hold such a half in a `str`, but neither print nor encode it.
"""

from __future__ import annotations

import re
from typing import Any, cast

_HALF = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")

REPLACEMENT = "\ufffd"


def has_half(text: str) -> bool:
    """Whether `text` holds a lone surrogate."""
    return not text.isascii() and _HALF.search(text) is not None


def joined(text: str) -> tuple[str, str]:
    """`text` with its pairs joined and its lone halves replaced, and the first half of a pair that it may end in."""
    text = _PAIR.sub(lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)
    held = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
    return _HALF.sub(REPLACEMENT, text.removesuffix(held)), held


def without_halves(value: Any) -> Any:
    """A JSON value in which every half that lacks its other became U+FFFD."""
    if isinstance(value, str):
        whole, held = joined(value)
        return whole + (REPLACEMENT if held else "")
    if isinstance(value, list):
        return [without_halves(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {without_halves(key): without_halves(item) for key, item in cast("dict[str, Any]", value).items()}
    return value
