"""The docs say what the program does: what they show runs, and what they list is all there is."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import napari_xcebra
from napari_xcebra.attribution.methods import METHODS

ROOT = Path(__file__).parents[2]
PACKAGE = Path(napari_xcebra.__file__).parent
sys.path.insert(0, str(ROOT / "docs" / "tools"))


def test_what_the_pages_show_runs_and_prints_what_they_say():
    command = [sys.executable, str(ROOT / "docs" / "make_results.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250)

    assert done.returncode == 0, done.stderr


def test_the_house_has_every_module():
    from house import drawn

    names = {path.name for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    picture = drawn()
    assert [n for n in names - {"__init__.py", "__pycache__"} if n not in picture] == []


def test_what_a_developer_looks_for_is_where_the_docs_say():
    page = (ROOT / "docs" / "developing.md").read_text("utf-8")
    places = re.findall(r"^\| .* \| `(\S+\.py)` \| `(\w+)` \|$", page, re.MULTILINE)
    assert len(places) > 15
    for module, name in places:
        code = (PACKAGE / module).read_text("utf-8")
        assert re.search(rf"^(def|class) {name}\b", code, re.MULTILINE), (module, name)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_told_by_its_name(method):
    assert f"`{method}`" in (ROOT / "docs" / "method.md").read_text("utf-8")


def test_equations_become_something_that_browsers_draw_by_themselves():
    from hooks import on_page_markdown

    page = on_page_markdown("Costs `$5`: $x^2$\n\n```\n$HOME\n```\n\n$$\\sum_i x_i$$\n")

    assert "Costs `$5`: <span><math" in page
    assert "```\n$HOME\n```" in page
    assert '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">' in page


def test_a_part_that_is_not_written_is_an_error_and_no_gap():
    from hooks import on_page_markdown

    with pytest.raises(KeyError, match="writes no 'nonsense'"):
        on_page_markdown("{{ nonsense }}")
