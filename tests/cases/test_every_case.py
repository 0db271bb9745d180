"""Where each fault of the case list is covered."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent

CASES = {case["id"]: case for case in json.loads((HERE.parent / "cases.json").read_text("utf-8"))}

PROVIDERS = "it is about a provider's own stream, which Mastra has made chunks of before anything comes here"

COVERED: dict[str, str] = {
    # sse-framing
    **dict.fromkeys(("B001", "B003", "B004", "B006", "B007", "B009", "B010", "B012", "B013"), "test_framing.py"),
    "B015": "test_framing.py",
    # tool-args, tool-pairing
    **dict.fromkeys(("B056", "B058", "B059", "B061", "B067", "B068", "B070", "B071"), "test_tools.py"),
    **dict.fromkeys(("B062", "B064", "B065"), PROVIDERS),
    **dict.fromkeys(("B073", "B075", "B076"), "test_tools.py"),
    # usage
    **dict.fromkeys(("B078", "B081", "B084", "B086", "B087"), "test_usage.py"),
    **dict.fromkeys(("B080", "B083"), PROVIDERS),
    # hot-stream
    **dict.fromkeys(("B088", "B090", "B091", "B093", "B094", "B096", "B097"), "test_streams.py"),
    # error-propagation, tripwire
    **dict.fromkeys(("B098", "B100", "B101", "B103", "B104", "B106", "B107", "B109"), "test_errors.py"),
    **dict.fromkeys(("B110", "B112"), "test_errors.py"),
    # cancellation
    **dict.fromkeys(("B113", "B115", "B116", "B118", "B119", "B121", "B122"), "test_streams.py"),
    # ordering
    **dict.fromkeys(("B142", "B144", "B145", "B147", "B148"), "test_drift.py"),
    # wire-drift
    **dict.fromkeys(("B163", "B165", "B166", "B168", "B169"), "test_drift.py"),
    # memory
    **dict.fromkeys(("B124", "B126", "B127", "B129", "B130"), "test_streams.py"),
    # resume
    **dict.fromkeys(("B019", "B021", "B022", "B024", "B025"), "test_long_runs.py"),
    **dict.fromkeys(("B016", "B018"), "../client/test_faults.py"),
    # partial-json, schema-validation
    **dict.fromkeys(("B027", "B029", "B030", "B033", "B034", "B036", "B037"), "test_partial_json.py"),
    **dict.fromkeys(("B039", "B040", "B042", "B043"), "test_partial_json.py"),
    **dict.fromkeys(("B045", "B047", "B048", "B050", "B051", "B053", "B054"), "test_schema_validation.py"),
    # ui-thread
    **dict.fromkeys(("B131", "B133", "B134", "B136", "B137", "B139", "B140"), "test_ui_thread.py"),
    # background-tasks, nested-agents
    **dict.fromkeys(("B150", "B152", "B153"), "test_long_runs.py"),
    **dict.fromkeys(("B155", "B157", "B158", "B160", "B161"), "test_long_runs.py"),
}


def test_every_case_is_in_the_table() -> None:
    assert len(CASES) == 110
    assert set(COVERED) == set(CASES)


@pytest.mark.parametrize(("case", "where"), sorted(COVERED.items()))
def test_a_case_is_where_the_table_says(case: str, where: str) -> None:
    """A test that is about a case names it at the beginning of its docstring."""
    if where == PROVIDERS:
        pytest.skip(PROVIDERS)
    named = re.findall(r'"""((?:B\d{3}(?:, )?)+)', (HERE / where).read_text("utf-8"))
    assert any(case in ids for ids in named), f"no test of {where} names {case}"


def test_no_test_names_a_case_that_does_not_exist() -> None:
    named = {case for file in HERE.glob("test_*.py") for case in re.findall(r"\bB\d{3}\b", file.read_text("utf-8"))}
    assert named <= set(CASES)
