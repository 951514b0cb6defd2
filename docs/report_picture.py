"""The picture of a report in README and docs: a run of a simulated field, in a real browser.

    python docs/report_picture.py        # part of `make screenshots`

Writes docs/images/10-report.png. Without a browser (Chromium, Chrome or Edge) there is no picture,
and the one that is there stays.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

from napari_xcebra.attribution import attribute, significance
from napari_xcebra.attribution.methods import FIRST
from napari_xcebra.learn import Factor, FitSettings, fit
from napari_xcebra.report import Material, run_report, write_report
from napari_xcebra.runs import Run, now
from napari_xcebra.simulate import field

PICTURE = Path(__file__).parent / "images" / "10-report.png"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")
SIZE = (1280, 1560)


def report(path: Path) -> Path:
    """Page about a run, all of it computed here."""
    simulation = field(cells=200, frames=12_000, seed=0)
    recording, factors = simulation.recording, dict(simulation.factors)
    trained = fit(recording, factors, FitSettings(seed=0))
    run = Run("run 1", now(), {name: Factor(v) for name, v in factors.items()}, trained)
    for method in FIRST:
        run = run.with_attribution(attribute(trained, recording, method))
    run = run.with_significance(significance(trained, recording))
    return write_report(run_report(Material.of_run(run, recording)), path)


def photograph(page: Path, browser: str, folder: Path) -> None:
    """Write what the browser shows of the page's beginning."""
    whole = folder / "page.png"
    subprocess.run(
        [
            browser,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={SIZE[0]},{SIZE[1] + 200}",
            f"--screenshot={whole}",
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    Image.open(whole).convert("RGB").crop((0, 0, *SIZE)).quantize(128).save(PICTURE, optimize=True)


if __name__ == "__main__":
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        print(f"No browser of {', '.join(BROWSERS)} was found: {PICTURE.name} stays as it is.")
    else:
        with tempfile.TemporaryDirectory() as folder:
            photograph(report(Path(folder) / "report.html"), found, Path(folder))
        print(f"Wrote {PICTURE}.")
