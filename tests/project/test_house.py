"""The house stays one that a stranger can read: few rooms, each with a subject of its own."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import napari_xcebra

NAME = "napari_xcebra"
PACKAGE = Path(napari_xcebra.__file__).parent
TESTS = Path(__file__).parents[1]
MOST_MODULES = 538
"""How many modules there were last; lower it with every merge, never raise it."""
ONCE = ("about", "counted", "duration", "percent", "read_description", "sentence_on_failure")


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its full name; a package goes by the name of its folder."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = [NAME, *path.relative_to(PACKAGE).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def imported_by(name: str) -> set[str]:
    """Modules of ours that a module imports, anywhere in it and for whatever reason."""
    found = set()
    for node in ast.walk(tree_of(modules()[name])):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & modules().keys()
        elif isinstance(node, ast.ImportFrom) and node.module in modules():
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= whole & modules().keys()
            if whole - modules().keys():
                found.add(node.module)
    return found - {name}


def is_format(path: Path) -> bool:
    """Whether it is found by looking into its folder, rather than imported."""
    return path.is_relative_to(PACKAGE / "io") and "\ndef sniff(" in path.read_text("utf-8")


def plain_modules() -> dict[str, Path]:
    return {name: path for name, path in modules().items() if path.name != "__init__.py"}


def test_the_house_gets_no_more_rooms():
    assert len(modules()) <= MOST_MODULES


def test_no_module_is_longer_than_seven_hundred_lines():
    lengths = {name: len(path.read_text("utf-8").splitlines()) for name, path in modules().items()}
    assert {name: n for name, n in lengths.items() if n > 700} == {}


def test_a_short_module_serves_more_than_one_other():
    importers = Counter(used for name in modules() for used in imported_by(name))
    lonely = [
        name
        for name, path in plain_modules().items()
        if importers[name] <= 1
        and not is_format(path)
        and len(path.read_text("utf-8").splitlines()) < 40
    ]
    assert lonely == []


def test_the_tests_mirror_the_tree():
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    missing = [str(f) for f in folders - {Path("project")} if not (PACKAGE / f).is_dir()]
    assert missing == []


@pytest.mark.parametrize("name", ONCE)
def test_what_all_need_is_written_once(name):
    homes = [
        module
        for module, path in modules().items()
        for node in tree_of(path).body
        if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    assert len(homes) == 1, homes


def test_private_parts_of_napari_are_touched_in_one_module():
    private = re.compile(r"\._qt_(window|viewer|open)\b|_welcome_widget|cursor\._|__wrapped__")
    touching = [name for name, path in modules().items() if private.search(path.read_text("utf-8"))]
    assert touching == [f"{NAME}.widgets.controls.napari_window"]
