"""The folders tell the story: imports go down only, and each outside library has one door."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeGuard

import pytest

import mastra_rx

ROOT = Path(mastra_rx.__file__).parent

FLOORS: list[set[str]] = [
    {"errors"},
    {"chunks", "partial_json", "schema", "shared_stream", "view"},  # the ground floor: not sideways either
    {"sources", "operators"},
    {"run_output"},  # what the outputs share
    {"output", "workflow_output", "network_output"},
    {"client", "relay", "jupyter", "cli", "timeline"},
    {"__main__"},
]
FLOOR_OF = {part: number for number, parts in enumerate(FLOORS) for part in parts}
GROUND = FLOORS[1]
BESIDE = {"recordings"}  # data: imports nothing, may be imported by all above the ground
DOORS = {
    "httpx2": "client/http.py",
    "IPython": "jupyter/",
    "anywidget": "jupyter/",
    "typer": "cli/",
    "rich": "cli/",
}
HEAVY = ("jsonschema", "httpx2", "IPython", "anywidget", "rich", "typer", "referencing")

FILES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))


@cache
def tree(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text("utf-8"))


def imports(file: str) -> Iterator[tuple[str, str]]:
    """Each import of a file as (module, name), module absolute; those for type checkers only are imports too.

    Not so what `_repr_html_` imports: in Jupyter things show themselves by the timeline, a door opened by looking.
    """
    package = ["mastra_rx", *Path(file).parts[:-1]]
    shown = {
        inner
        for node in ast.walk(tree(file))
        if isinstance(node, ast.FunctionDef) and node.name == "_repr_html_"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree(file)):
        if node in shown:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, ""
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield module, alias.name
        elif is_import_by_name(node):
            yield ast.literal_eval(node.args[0]), ""


def is_import_by_name(node: ast.AST) -> TypeGuard[ast.Call]:
    """`import_module("x")`, or `needed("x", ...)` of `jupyter/`."""
    return (
        isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("importlib.import_module", "import_module", "needed")
        and isinstance(node.args[0], ast.Constant)
    )


def part_of(module: str, name: str = "") -> str | None:
    """The part of the library that an import reaches: `operators`, `view`, ...; None for other libraries."""
    path = [*module.split("."), name]
    return path[1] if path[0] == "mastra_rx" and len(path) > 1 else None


def own_part(file: str) -> str:
    return Path(file).parts[0].removesuffix(".py")


def test_every_part_has_a_floor() -> None:
    assert {own_part(file) for file in FILES} - {"__init__"} == set(FLOOR_OF) | BESIDE


@pytest.mark.parametrize("file", [file for file in FILES if file != "__init__.py"])
def test_imports_go_down_only(file: str) -> None:
    own = own_part(file)
    reached = {part for module, name in imports(file) if (part := part_of(module, name)) is not None} - {own}
    if own in BESIDE:
        assert not reached
        return
    wrong = {part for part in reached - BESIDE if FLOOR_OF[part] > FLOOR_OF[own]}
    assert not wrong, f"{file} imports from above: {wrong}"
    if own in GROUND:
        assert reached <= {"errors"}, f"{file} imports sideways: {reached - {'errors'}}"


def test_sources_and_operators_share_a_floor_one_way_only() -> None:
    sideways = {
        (file, module)
        for file in FILES
        for module, name in imports(file)
        if {own_part(file), part_of(module, name)} == {"sources", "operators"}
    }
    # `until_idle` follows background tasks with their reducer; no operator knows a source
    assert sideways == {("sources/until_idle.py", "mastra_rx.operators.background_tasks")}


@pytest.mark.parametrize("library", DOORS)
def test_each_outside_library_has_one_door(library: str) -> None:
    users = {file for file in FILES for module, _ in imports(file) if module.split(".")[0] == library}
    door = DOORS[library]
    others = {file for file in users if not file.startswith(door)} - typed_only(library)
    assert not others
    assert users, f"nobody imports {library} any more"


def typed_only(library: str) -> set[str]:
    """The files that name the library for type checkers only."""
    found: set[str] = set()
    for file in FILES:
        inside = [
            node
            for block in ast.walk(tree(file))
            if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
            for node in ast.walk(block)
        ]
        every = [node for node in ast.walk(tree(file)) if names(node, library)]
        if every and all(node in inside for node in every):
            found.add(file)
    return found


def names(node: ast.AST, library: str) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.split(".")[0] == library for alias in node.names)
    if is_import_by_name(node):
        return ast.literal_eval(node.args[0]).split(".")[0] == library
    return isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == library


OPERATORS = [file for file in FILES if file.startswith("operators/") and not file.endswith("__init__.py")]


@pytest.mark.parametrize("file", OPERATORS)
def test_operators_do_not_import_each_others_operators(file: str) -> None:
    """Reducers may be shared, the functions that users call may not: each stands on its reducer alone."""
    public = set(mastra_rx.operators.__all__)
    taken = {name for module, name in imports(file) if module.startswith("mastra_rx.operators.") and name in public}
    assert not taken, f"{file} imports the operators {taken}"


def test_chunks_know_nothing_of_rx() -> None:
    for part in ("chunks", "partial_json", "schema"):
        for file in FILES:
            if own_part(file) == part:
                assert "reactivex" not in {module.split(".")[0] for module, _ in imports(file)}, file


def test_importing_the_library_imports_nothing_that_is_not_used() -> None:
    code = f"import sys, mastra_rx; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_no_globals_are_set() -> None:
    """State lives in objects: no `global` statement anywhere."""
    assert [file for file in FILES for node in ast.walk(tree(file)) if isinstance(node, ast.Global)] == []
