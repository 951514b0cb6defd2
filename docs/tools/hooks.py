"""What mkdocs does with a page beside rendering it.

`{{ name }}` on a line of its own becomes what `reference.py` writes under that name, and
`$…$`, `$$…$$` become MathML: browsers draw it themselves, so that no page loads anything from
elsewhere.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

sys.path.insert(0, str(Path(__file__).parent))
import reference

_CODE = re.compile(r"^(```.*?^```|~~~.*?^~~~)|`[^`\n]+`", re.DOTALL | re.MULTILINE)
_MATH = re.compile(r"\$\$(?P<block>.+?)\$\$|\$(?P<inline>[^$\n]+?)\$", re.DOTALL)
_GENERATED = re.compile(r"^\{\{ (\w+) \}\}$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Page with generated parts and equations put in."""
    markdown = _GENERATED.sub(lambda found: reference.written(found[1]), markdown)
    return outside_code(markdown, lambda text: _MATH.sub(_drawn, text))


def outside_code(markdown: str, change: Any) -> str:
    """Page in which all but its code is changed."""
    parts, end = [], 0
    for code in _CODE.finditer(markdown):
        parts += [change(markdown[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, change(markdown[end:])])


def _drawn(found: re.Match[str]) -> str:
    if found["block"]:
        return convert(found["block"].strip(), display="block").replace("\n", " ")
    # a line must not begin with a tag that markdown takes for a block
    return f"<span>{convert(found['inline'])}</span>"
