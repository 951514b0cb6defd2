"""Run what the pages show, and put what it printed under it.

    python docs/make_results.py            # writes the results into docs/**/*.md and README.md
    python docs/make_results.py --check    # runs them and says which pages would change

Blocks that begin with ```python are run, those of a page one after the other in one interpreter; so
are lines after `$ napari-xcebra` in ```console blocks. A ```text block right after one holds what
it printed. ```py and ```sh blocks are only shown. Pages are run in a folder with the files that
`stage` writes: a small simulated recording as suite2p, CaImAn, NWB and arrays would have it.

Numbers differ in their last digits between machines, and now and then what is said of them;
`--check` looks at all else.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
import warnings
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import scipy.sparse

from napari_xcebra.cli import main as command_line
from napari_xcebra.io.formats.nwb.writing import write_nwb
from napari_xcebra.io.formats.suite2p.writing import write_suite2p
from napari_xcebra.recording import Recording
from napari_xcebra.simulate import field

DOCS = Path(__file__).parent
PAGES = sorted({*DOCS.rglob("*.md"), DOCS.parent / "README.md"})
_BLOCK = re.compile(
    r"^```(?P<kind>python|console)\n(?P<code>.*?)^```\n(?:\n```text\n(?P<printed>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
_NUMBER = re.compile(r"[-−+]?\d[\d.,]*(e[-+]?\d+)?|nan|[▁▂▃▄▅▆▇█]+|True|False|weakly ")


def main() -> int:
    """Run the pages that have something to run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; say what would change")
    parser.add_argument("pages", nargs="*", type=Path, help="only these")
    given = parser.parse_args()
    changed = []
    for page in map(Path.resolve, given.pages or PAGES):
        before = page.read_text("utf-8")
        if not _BLOCK.search(before):
            continue
        after = with_results(before)
        if without_numbers(after) != without_numbers(before):
            changed.append(page)
        if not given.check and after != before:
            page.write_text(after, "utf-8")
    for page in changed:
        print(f"{page.relative_to(DOCS.parent)} prints something else now.", file=sys.stderr)
    return 1 if given.check and changed else 0


def with_results(page: str) -> str:
    """Page whose blocks have been run, with what they printed under them."""
    names: dict[str, Any] = {"__name__": "__main__"}

    def run(block: re.Match[str]) -> str:
        printed = printed_by(block["kind"], block["code"], names)
        shown = f"```{block['kind']}\n{block['code']}```\n"
        return shown + (f"\n```text\n{printed}```\n" if printed else "")

    with staged():
        return _BLOCK.sub(run, page)


def printed_by(kind: str, code: str, names: dict[str, Any]) -> str:
    """What a block prints."""
    with contextlib.redirect_stdout(io.StringIO()) as said, warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        if kind == "python":
            exec(compile(code, "<page>", "exec"), names)
        else:
            for line in code.replace("\\\n", " ").splitlines():
                arguments = shlex.split(line.removeprefix("$ napari-xcebra"), comments=True)
                if line.startswith("$ napari-xcebra") and command_line(arguments) != 0:
                    raise RuntimeError(f"{line} failed")
    lines = [line.rstrip() for line in said.getvalue().splitlines()]
    return "\n".join(lines) + "\n" if lines else ""


@contextlib.contextmanager
def staged() -> Any:
    """A folder with files to open, in which a page is run."""
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NAPARI_XCEBRA_DATA"] = str(Path(folder) / "data")
        os.chdir(folder)
        try:
            stage()
            yield
        finally:
            os.chdir(home)


def stage() -> None:
    """Write one small recording in the formats that the pages open."""
    recording = field(cells=40, frames=8000, shape=(128, 128), junk=4, seed=0).recording
    # suite2p has fluorescence, which does not come near zero
    bright = replace(recording, traces=1000 * (1 + np.asarray(recording.traces)))
    write_suite2p(bright, Path("suite2p/plane0"))
    write_caiman(recording, Path("results.hdf5"))
    began = datetime(2026, 1, 1, tzinfo=UTC)
    write_nwb(recording, Path("session.nwb"), started=began)
    position, speed = recording.variable("position").values, recording.variable("speed").values
    table = {"time_s": recording.times, "x_cm": 100 * position[:, 0], "y_cm": 100 * position[:, 1]}
    table["heading_rad"] = recording.variable("direction").values[:, 0]
    table["speed_cm_s"] = 100 * speed[:, 0]
    pd.DataFrame(table).round(3).to_csv("behaviour.csv", index=False)
    np.save("traces.npy", np.asarray(recording.traces))
    np.save("position.npy", position)
    np.save("speed.npy", speed[:, 0])


def write_caiman(recording: Recording, path: Path) -> None:
    """What CaImAn's `CNMF.save()` writes of a recording, as far as it is read."""
    footprints, cells = recording.footprints, recording.n_cells
    assert footprints is not None
    height, width = footprints.shape
    # CaImAn counts pixels down the columns of the image
    place = np.asarray(footprints.column) * height + footprints.row
    weights = scipy.sparse.csc_array(
        (footprints.weight, (place, footprints.cell)), shape=(height * width, cells)
    )
    with h5py.File(path, "w") as file:
        traces = np.asarray(recording.traces).T
        for name in ("C", "F_dff"):
            file[f"estimates/{name}"] = traces
        file["estimates/dims"] = (height, width)
        file["estimates/idx_components"] = np.flatnonzero(recording.accepted)
        for name in ("data", "indices", "indptr", "shape"):
            file[f"estimates/A/{name}"] = getattr(weights, name)
        file["params/data/fr"] = recording.rate


def without_numbers(page: str) -> str:
    """Page in which what was printed has no numbers, and columns no width."""

    def masked(block: re.Match[str]) -> str:
        printed = re.sub(r"\s+", " ", _NUMBER.sub("#", block["printed"] or ""))
        return f"{block['code']}{printed}"

    return _BLOCK.sub(masked, page)


if __name__ == "__main__":
    sys.exit(main())
