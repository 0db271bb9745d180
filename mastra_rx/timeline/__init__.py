"""The timeline: a picture of a run, and a page to walk through it.

chunks      read_timed              a recording, with the times at which its chunks came
model       lanes, axis             lanes with spans and marbles, marks over all lanes; where each chunk stands
picture     layout, svg             every shape and text with its place; SVG
page        states, page            what every view says at each chunk; one self-contained HTML file

import mastra_rx as mx
svg = mx.timeline.timeline_svg(mx.as_view(mx.from_jsonl("run.jsonl")))
"""

from ..sources.jsonl import read_timed
from .page import timeline_page
from .svg import timeline_svg

__all__ = ["read_timed", "timeline_page", "timeline_svg"]
