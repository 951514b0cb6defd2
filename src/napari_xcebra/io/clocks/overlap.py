"""Says how behaviour and frames overlap in time, and why they may not."""

from __future__ import annotations

import numpy as np

from napari_xcebra.io.clocks.events import PER_SECOND
from napari_xcebra.io.clocks.resample import Clock
from napari_xcebra.text import percent

_YEAR_2000 = 946_684_800.0
"""Seconds since 1970: later times are dates rather than seconds since a recording began."""


GAPS_TOLD = 3
"""Gaps of which a note says where they are."""


def coverage(who: str, clock: Clock, n_frames: int) -> list[str]:
    """Notes on the frames that samples cover, and on the gaps between them."""
    # seconds since 1970 tell nobody where in a recording something is
    begin = clock.frames[0] if len(clock.frames) and clock.frames[0] > _YEAR_2000 else 0.0
    seen = clock.frames[clock.known] - begin
    notes = [f"{who} covers {percent(len(seen) / n_frames)} of the frames ({span(seen)})."]
    steps = np.diff(clock.times)
    gaps = np.flatnonzero(steps > clock.gap)
    if len(gaps):
        longest = gaps[np.argsort(-steps[gaps], kind="stable")][:GAPS_TOLD]
        told = ", ".join(f"{steps[g]:.3g} s at {_brief(clock.times[g] - begin)} s" for g in longest)
        many = f"{len(gaps)} gaps, the longest of" if len(gaps) > 1 else "a gap of"
        notes.append(
            f"{who} has {many} {told}: a step between samples of more than {clock.gap:.3g} s is a "
            "gap, and frames there have no value (`gap`)."
        )
    return notes


def misplaced(who: str, clock: Clock) -> str | None:
    """Why samples cannot be on the clock of the frames; None if they can."""
    apart = _in_another_unit(who, clock)
    if apart is not None:
        return apart
    if clock.known.any():
        return None
    times, frames = clock.times, clock.frames
    sentence = (
        f"{who} runs from {span(times)}, the frames from {span(frames)}: they do not overlap."
    )
    if times[0] > _YEAR_2000 > frames[-1]:
        sentence += " It seems to count from 1970 (Unix time), the imaging from its first frame."
    return (
        f"{sentence} Set `offset` to the seconds between the two ({frames[0] - times[0]:.10g} if "
        "both began together), or name the unit in the header, such as time_ms."
    )


def _in_another_unit(who: str, clock: Clock) -> str | None:
    """Sentence for samples that span a thousand times as long as the frames."""
    if len(clock.frames) < 2:
        return None
    ratio = np.ptp(clock.times) / np.ptp(clock.frames)
    for unit, factor in PER_SECOND.items():
        if 0.8 < ratio / factor < 1.25:
            return (
                f"{who} lasts {np.ptp(clock.times):.6g} s but the frames {np.ptp(clock.frames):.6g}"
                f" s: its times look like {unit}. Name the unit in the header, such as time_{unit},"
                " or give seconds."
            )
    return None


def lost_values(name: str, samples: np.ndarray, placed: np.ndarray, clock: Clock) -> str | None:
    """Note on discrete values that mostly vanish because they are shorter than a frame."""
    inside = clock.owner >= 0
    before, after = _shares(samples[inside]), _shares(placed)
    lost = [v for v, share in before.items() if after.get(v, 0.0) < share / 2]
    if not lost:
        return None
    worst = max(lost, key=lambda value: before[value])
    return (
        f"{name} is {worst:g} in {100 * before[worst]:.2g} % of the samples but in "
        f"{100 * after.get(worst, 0.0):.2g} % of the frames, because it rarely lasts for most of a "
        f"frame: set the kind of {name} to continuous to use its mean over each frame instead."
    )


def _shares(values: np.ndarray) -> dict[float, float]:
    """Share of the known values that each different one has."""
    import pandas as pd

    codes, different = pd.factorize(values[~np.isnan(values)])
    counts = np.bincount(codes, minlength=len(different)) / max(len(codes), 1)
    return dict(zip(np.asarray(different).tolist(), counts.tolist(), strict=True))


def span(times: np.ndarray) -> str:
    """First and last time, such as "3.2 s to 403.9 s"."""
    return f"{_brief(times[0])} s to {_brief(times[-1])} s" if len(times) else "no time"


def _brief(seconds: float) -> str:
    text = f"{seconds:.2f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
