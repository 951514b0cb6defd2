"""Write RESULTS.md: the headline of every section of results/, and how old each is beside its code.

    python benchmarks/headlines.py [--check]

A headline is the paragraph of a section that begins with **In short:**; it stays with the figures
it speaks of. How much of the code a page speaks of has changed since a section was measured is
taken from the history. ``--check`` writes nothing, and says which sections lack what they need.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
SOURCE = "src/napari_xcebra"
CODE = {
    "ordinary": ("learn", "recording"),
    "maps": ("attribution", "learn"),
    "real": ("learn", "attribution", "io"),
    "paper": ("learn", "attribution"),
    "sessions": ("learn", "batch"),
    "reference": ("learn", "attribution", "interop"),
    "speed": ("learn", "attribution"),
    "files": ("io", "curation"),
    "window": ("widgets",),
}
"""Pages of results/ in their order, and the folders of the program that each speaks of."""
OLD = 0.1
"""Share of changed lines from which a section counts as older than its code."""
INTRODUCTION = """\
# Measured

The headlines. The figures behind them lie in [results/](results), a page a subject; each section
there is the output of a script in this folder, with its date, machine and commit. The machine is
a shared virtual one with two cores and no GPU: compare ratios, not seconds.

*Changed since*: the share of lines, in the folders of the program that a page speaks of, that were
changed or moved after a section was measured. **Bold**, from a tenth on: these figures are of
older code. `python benchmarks/headlines.py` writes this page.
"""


@dataclass(frozen=True)
class Section:
    """One section of a page: what was measured, when, and of which code."""

    page: str
    title: str
    text: str

    @property
    def date(self) -> str:
        """Day on which it was measured."""
        found = re.search(r"\b20\d\d-\d\d-\d\d\b", self.text)
        return found.group() if found else ""

    @property
    def commit(self) -> str:
        """First commit it names that is in the history; without one, the last of its day."""
        named = re.findall(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,12}\b", self.text[:2000])
        for commit in named:
            if run_git("cat-file", "-t", commit) == "commit":
                return commit
        return run_git("rev-list", "-1", f"--before={self.date} 23:59", "HEAD")[:7]

    @property
    def headline(self) -> str:
        """What it found, in its own words."""
        found = re.search(
            r"^\*\*In short:\*\* (.+?)(?:\n\n|\Z)", self.text, re.MULTILINE | re.DOTALL
        )
        return " ".join(found.group(1).split()) if found else ""

    @property
    def anchor(self) -> str:
        """Where its heading lies on the page, as the host of the repository names it."""
        return re.sub(r"[^\w\- ]", "", self.title.lower()).replace(" ", "-")


def read_sections() -> list[Section]:
    """All sections of all pages, in order."""
    return [
        Section(page, text.split("\n", 1)[0].removeprefix("## "), text)
        for page in CODE
        for text in re.split(r"(?m)^(?=## )", (HERE / "results" / f"{page}.md").read_text("utf-8"))[
            1:
        ]
    ]


def changed_since(section: Section) -> float:
    """Share of the lines of the code it speaks of that were changed after it was measured."""
    folders = [f"{SOURCE}/{name}" for name in CODE[section.page]]
    changes = run_git("diff", "-M", "--numstat", section.commit, "HEAD", "--", *folders)
    added = sum(int(line.split("\t")[0]) for line in changes.splitlines() if line[0] != "-")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return min(added / sum(len(path.read_text("utf-8").splitlines()) for path in files), 1.0)


def write_page(sections: list[Section]) -> str:
    """The page of headlines."""
    pages = []
    for page in CODE:
        title = (HERE / "results" / f"{page}.md").read_text("utf-8").split("\n", 1)[0]
        rows = ["| | in short | measured | changed since |", "| --- | --- | --- | --- |"]
        for section in (s for s in sections if s.page == page):
            share = changed_since(section)
            mark = f"**{share:.0%}**" if share >= OLD else f"{share:.0%}"
            link = f"[{section.title}](results/{page}.md#{section.anchor})"
            rows.append(
                f"| {link} | {section.headline} | {section.date}, {section.commit} | {mark} |"
            )
        pages.append(f"## {title.removeprefix('# Measured: ')}\n\n" + "\n".join(rows) + "\n")
    return "\n".join([INTRODUCTION, *pages])


def find_gaps(sections: list[Section]) -> list[str]:
    """What sections lack, and pages that nobody lists."""
    gaps = [f"{s.page}.md, {s.title}: no date" for s in sections if not s.date]
    gaps += [f"{s.page}.md, {s.title}: no line In short" for s in sections if not s.headline]
    listed = {f"{page}.md" for page in CODE}
    return gaps + [
        f"{p.name}: not in CODE" for p in (HERE / "results").glob("*.md") if p.name not in listed
    ]


def run_git(*arguments: str) -> str:
    """What git answers; nothing where it cannot."""
    done = subprocess.run(
        ["git", *arguments], capture_output=True, text=True, cwd=ROOT, check=False
    )
    return done.stdout.strip()


def main() -> int:
    """Write the page, or check what it would be made of."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; say what is missing")
    chosen = parser.parse_args()
    sections = read_sections()
    gaps = find_gaps(sections)
    if not chosen.check:
        (HERE / "RESULTS.md").write_text(write_page(sections), "utf-8")
    print("\n".join(gaps), file=sys.stderr)
    return bool(gaps) and chosen.check


if __name__ == "__main__":
    sys.exit(main())
