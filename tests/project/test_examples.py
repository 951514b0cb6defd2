"""The examples in docstrings run, and print what they say."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import napari_xcebra

PACKAGE = Path(napari_xcebra.__file__).parent
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
WITH_EXAMPLES = sorted(
    ".".join(("napari_xcebra", *path.relative_to(PACKAGE).with_suffix("").parts))
    for path in PACKAGE.rglob("*.py")
    if ">>>" in path.read_text("utf-8")
)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_of_a_module_print_what_they_say(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where they may write
    module = import_module(name.removesuffix(".__init__"))
    failed, _ = doctest.testmod(module, optionflags=OPTIONS)
    assert not failed
