"""What to say about two clocks: how much of the frames one covers, and why it may be none."""

from __future__ import annotations

import numpy as np

from napari_xcebra.io.clocks.resample import Clock

_FACTORS = {"ms": 1e3, "us": 1e6, "ns": 1e9}
_YEAR_2000 = 946_684_800.0
"""Seconds since 1970: later times are dates rather than seconds since a recording began."""


def coverage(who: str, clock: Clock, n_frames: int) -> list[str]:
    """Notes on the frames that samples cover, and on the gaps between them."""
    seen = clock.frames[clock.known]
    notes = [f"{who} covers {_percent(len(seen), n_frames)} of the frames ({span(seen)})."]
    gaps = clock.gaps
    if len(gaps):
        many = f"{len(gaps)} gaps, the longest of" if len(gaps) > 1 else "a gap of"
        notes.append(f"{who} has {many} {gaps.max():.3g} s: frames there have no value.")
    return notes


def _percent(part: int, whole: int) -> str:
    """Share in per cent; what is not all or nothing is not rounded to it."""
    percent = 100 * part / whole
    if percent in (0, 100) or 1 <= percent <= 99:
        return f"{percent:.0f} %"
    return f"{min(percent, 99.9):.3g} %"


def misplaced(who: str, clock: Clock) -> str | None:
    """Why samples cannot be on the clock of the frames; None if they can."""
    apart = _in_another_unit(who, clock)
    if apart is not None:
        return apart
    if clock.known.any():
        return None
    times, frames = clock.times, clock.frames
    sentence = f"{who} runs from {span(times)}, the frames from {span(frames)}: they share no time."
    if times[0] > _YEAR_2000 > frames[-1]:
        sentence += " It counts from 1970 or so (Unix time), the imaging from its first frame."
    return (
        f"{sentence} Set `offset` to the seconds between the two ({frames[0] - times[0]:.10g} if "
        "both began together), or name the unit in the header, such as time_ms."
    )


def _in_another_unit(who: str, clock: Clock) -> str | None:
    """Sentence for samples that last a thousand times as long as the frames."""
    if len(clock.frames) < 2:
        return None
    ratio = np.ptp(clock.times) / np.ptp(clock.frames)
    for unit, factor in _FACTORS.items():
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
        f"{100 * after.get(worst, 0.0):.2g} % of the frames, because it seldom lasts for most of a "
        f"frame: set the kind of {name} to continuous to have its mean over each frame instead."
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
