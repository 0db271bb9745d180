"""Where chunks come from. Each source is a cold `Observable[Chunk]`, one module a source.

from_chunks     an Observable, iterable or async iterable of chunks, dicts or JSON
from_bytes      bytes as a server sends them: SSE, record-separated or JSON Lines
from_jsonl      a recording
record          writes a recording
"""

from .byte_stream import from_bytes
from .iterables import from_chunks
from .jsonl import from_jsonl, record
from .until_idle import until_idle

__all__ = ["from_bytes", "from_chunks", "from_jsonl", "record", "until_idle"]
