"""A document as one HTML page that needs nothing else: no network, no file beside it."""

from __future__ import annotations

import base64
import gzip
import hashlib
from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from napari_xcebra.report.document import Document, Download

LARGEST_PLAIN = 2**20
"""Bytes up to which a table is put into the page as it is; larger ones are compressed."""


def rendered(document: Document) -> str:
    """The page. Names from files are text wherever they turn up, whatever they look like."""
    script = _part("page.js")
    # the browser itself then refuses whatever is not ours, should anything slip through
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = _environment().from_string(_part("page.html.jinja"))
    return template.render(document=document, style=_part("page.css"), script=script, digest=digest)


def download(name: str, table: str, text: str) -> Download:
    """A table as CSV inside the page, for a click to save."""
    content = table.encode()
    kind = "text/csv"
    if len(content) > LARGEST_PLAIN:
        name, kind = f"{name}.gz", "application/gzip"
        content = gzip.compress(content, mtime=0)
    return Download(name, data_address(content, kind), text)


def data_address(content: bytes, kind: str) -> str:
    """Content as an address, so that it can stand in the page."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


@cache
def _environment() -> Environment:
    return Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


@cache
def _part(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")
