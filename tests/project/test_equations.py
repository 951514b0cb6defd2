"""A search for the number of an equation of the paper leads to one function."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
IMPLEMENTED = {
    "Eq. 1": "box_walk",
    "Eq. 2": "box_walk",
    "Eq. 3": "_BoxMixing.__call__",
    "Eq. 7": "_BoxMixing.jacobian",
    "Eq. 8": "Psi.info_nce",
    "Eq. 9": "info_nce",
    "Eq. 10": "Objective.loss",
    "Eq. 11": "Attribution.above",
    "Eq. 15": "Objective.loss",
    "Eq. 24": "Psi._own",
    "Eq. 25": "Psi._of",
    "Eq. 26": "Size.chance",
    "Eq. 46": "inverse",
    "Theorem 1": "measure_goodness",
    "Theorem 2": "inverse",
}
MENTION = re.compile(r"\b(?:Eq\.|Theorem) \d+")
MODULES = sorted(SOURCE.rglob("*.py"))


def docstrings(module: Path) -> dict[str, str]:
    """Docstrings of the functions, methods and classes of a module, by name."""
    found = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found[prefix + child.name] = ast.get_docstring(child) or ""
                visit(child, f"{prefix}{child.name}.")

    visit(ast.parse(module.read_text(encoding="utf-8")), "")
    return found


def test_every_implemented_equation_is_named_in_the_docstring_of_its_function():
    named = {
        (mention, function)
        for module in MODULES
        for function, text in docstrings(module).items()
        for mention in MENTION.findall(text)
    }
    assert named == set(IMPLEMENTED.items())


def test_no_equation_is_named_in_a_second_place():
    sources = [module.read_text(encoding="utf-8") for module in MODULES]
    mentions = Counter(mention for text in sources for mention in MENTION.findall(text))
    assert mentions == dict.fromkeys(IMPLEMENTED, 1)


def test_no_equation_escapes_the_search():
    """Ranges, other spellings and line breaks are not found by a search for the number."""
    escaping = re.compile(
        r"\b(?:[Ee]qs\.|[Ee]quations?|eq\.|Eq\.(?! \d)|Theorems)\s*\(?\d|\bEq\.\s*\n"
    )
    found = {m.name: escaping.findall(m.read_text(encoding="utf-8")) for m in MODULES}
    assert not {name: each for name, each in found.items() if each}
