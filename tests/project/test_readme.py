"""The README as the hub and the index show it, where no file of the repository is beside it."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]
HOME, DOCS = URLS["Homepage"], URLS["Documentation"]
RAW = HOME.replace("github.com", "raw.githubusercontent.com") + "/main/"
BLOB = f"{HOME}/blob/main/"
LINKS = re.findall(r"\]\(([^)\s]+)\)", README)


def anchors(page: Path) -> set[str]:
    """What the headings of a page can be linked by."""
    heads = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def test_every_picture_has_an_address_that_works_anywhere_and_a_file_behind_it():
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README)

    assert len(pictures) >= 3
    for picture in pictures:
        assert picture.startswith(RAW)
        assert (ROOT / picture.removeprefix(RAW)).is_file(), picture


@pytest.mark.parametrize("link", [link for link in LINKS if link.startswith(BLOB)])
def test_every_link_into_the_repository_leads_to_a_file(link):
    path, _, anchor = link.removeprefix(BLOB).partition("#")

    assert (ROOT / path).is_file()
    assert not anchor or anchor in anchors(ROOT / path)


@pytest.mark.parametrize("link", [link for link in LINKS if link.startswith(DOCS)])
def test_every_link_into_the_docs_leads_to_a_page(link):
    page = link.removeprefix(DOCS).partition("#")[0].strip("/") or "index"

    assert (ROOT / "docs" / f"{page}.md").is_file()


def test_no_link_depends_on_where_the_readme_is_shown():
    assert [link for link in LINKS if "://" not in link and not link.startswith("#")] == []


def test_the_two_commands_for_developers_are_there():
    assert "make demo" in README
    assert "make test" in README


def test_a_stranger_reads_it_in_three_minutes_and_installs_first():
    """600 words, at 200 a minute; addresses of links are not read."""
    read = re.sub(r"\]\([^)]*\)", "]", README)
    assert len(read.split()) <= 600
    assert re.search(r"^## (.*)$", README, re.MULTILINE)[1] == "Install"
