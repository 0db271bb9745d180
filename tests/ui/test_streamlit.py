"""A real Streamlit app, run by its own test runner."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ui.feeds import LIMIT, module

module("streamlit")
from streamlit.testing.v1 import AppTest  # noqa: E402

pytestmark = [
    pytest.mark.streamlit,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def shown(app: Any) -> AppTest:
    test = AppTest.from_function(app, default_timeout=LIMIT).run()
    assert list(test.exception) == []
    return test


def written() -> None:
    import threading

    import streamlit as st

    import mastra_rx as mx

    output = mx.MastraModelOutput(mx.from_jsonl(mx.recording("tools")))
    threads = set()

    def pieces():  # type: ignore[no-untyped-def]
        for piece in output.text_stream:
            threads.add(threading.get_ident())
            yield piece

    st.write_stream(pieces)
    st.caption(f"on the script's thread: {threads == {threading.get_ident()}}")


def test_a_generator_of_pieces_is_written_on_the_scripts_thread() -> None:
    test = shown(written)
    assert [markdown.value for markdown in test.markdown] == ["It is 21.5 degrees."]
    assert [caption.value for caption in test.caption] == ["on the script's thread: True"]


def written_as_it_is() -> None:
    import streamlit as st

    import mastra_rx as mx

    st.write_stream(mx.MastraModelOutput(mx.from_jsonl(mx.recording("tools"))).text_stream)


def test_a_view_can_be_written_as_it_is() -> None:
    assert [markdown.value for markdown in shown(written_as_it_is).markdown] == ["It is 21.5 degrees."]


def from_a_thread() -> None:
    import asyncio
    import threading

    import streamlit as st

    import mastra_rx as mx

    pumps = set()

    async def source():  # type: ignore[no-untyped-def]
        with open(mx.recording("tools"), "rb") as lines:
            for line in lines:
                pumps.add(threading.get_ident())
                yield line
                await asyncio.sleep(0.002)

    output = mx.MastraModelOutput(source())
    box, state = st.empty(), st.empty()
    text, me = "", threading.get_ident()
    for snapshot in output.snapshots.latest():
        state.caption(", ".join(f"{run.tool_name}: {run.state}" for run in snapshot.tool_runs))
        text = snapshot.text
        box.markdown(text)
    st.write(f"{len(pumps)} pump, elsewhere: {me not in pumps}; {output.usage.run().total_tokens} tokens")


def test_a_run_that_comes_from_a_thread_is_painted_on_the_scripts() -> None:
    test = shown(from_a_thread)
    assert [caption.value for caption in test.caption] == ["weather: output-available"]
    text, foot = [markdown.value for markdown in test.markdown]
    assert text == "It is 21.5 degrees."
    assert foot.startswith("1 pump, elsewhere: True; ")


def shared() -> None:
    import streamlit as st

    import mastra_rx as mx

    if "output" not in st.session_state:
        st.session_state.output = mx.MastraModelOutput(mx.from_jsonl(mx.recording("text")))
        st.session_state.starts = 0
    st.session_state.starts += 1
    st.button("again")
    st.write_stream(st.session_state.output.text_stream)


def test_a_script_that_runs_again_reads_the_same_run_again() -> None:
    """Streamlit runs the script anew at each click; the run is kept in the session and replayed."""
    test = shown(shared)
    first = [markdown.value for markdown in test.markdown]
    test.button[0].click().run()
    assert test.session_state.starts == 2
    assert [markdown.value for markdown in test.markdown] == first
    assert first[0]


def failing() -> None:
    import streamlit as st

    import mastra_rx as mx

    def source():  # type: ignore[no-untyped-def]
        yield {"type": "text-delta", "payload": {"text": "so far"}}
        raise ConnectionError("socket hang up")

    try:
        st.write_stream(mx.MastraModelOutput(source()).text_stream)
    except mx.SourceError as error:
        st.error(str(error))


def test_a_failure_can_be_shown() -> None:
    test = shown(failing)
    assert "socket hang up" in test.error[0].value
