"""Holds every choice made between the files and a recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from napari_xcebra.settings import check_knobs, knob

TraceKind = Literal["auto", "raw", "corrected", "dff", "denoised", "events", "zscored"]
Layout = Literal["auto", "frames-cells", "cells-frames"]
BehaviorClock = Literal[
    "auto", "s", "ms", "us", "ns", "min", "h", "d", "frames", "frames-from-0", "frames-from-1",
    "samples", "rows",
]  # fmt: skip

SAME_RATE = 0.01
"""Relative difference up to which two frame rates are the same."""


@dataclass(frozen=True)
class OpenSettings:
    """How files are read; every field has a default, bounds and help."""

    traces: TraceKind = knob(
        "auto",
        "raw: fluorescence; corrected: minus neuropil; dff: ΔF/F over a running baseline; "
        "denoised; events: deconvolved; zscored: corrected, in standard deviations; auto: the "
        "best there is",
        advanced=False,
    )
    rate: float = knob(
        0.0,
        "frames per second (0: as the file says)",
        low=0.0,
        high=1e5,
        title="Frame rate (Hz)",
        advanced=False,
    )
    offset: float = knob(
        0.0,
        "seconds to add to the behaviour clock to bring it to the imaging clock",
        low=-1e7,
        high=1e7,
        title="Behaviour offset (s)",
        advanced=False,
    )
    behavior_rate: float = knob(
        0.0,
        "samples per second of behaviour that comes without times (0: one sample per frame)",
        low=0.0,
        high=1e6,
        title="Behaviour rate (Hz)",
        advanced=False,
    )
    behavior_clock: BehaviorClock = knob(
        "auto",
        "what the times of behaviour count: a unit of time, frames of the imaging, samples at the "
        "behaviour rate, or nothing, as each row is a frame (auto: as the header says)",
        title="Behaviour clock",
        advanced=False,
    )
    trigger: str = knob(
        "",
        "behaviour column that marks the imaging frames: pulses (their rising edges) or frame "
        "numbers; or a file of the frame times on the behaviour clock (.csv, .npy)",
        title="Frame trigger",
        advanced=False,
        file=True,
    )
    behavior_times: str = knob(
        "",
        "file of the times of behaviour that comes without any, such as the camera's timestamps "
        "of a pose file (.csv, .npy)",
        title="Behaviour times",
        advanced=False,
        file=True,
    )
    video: str = knob(
        "",
        "video of the animal, shown beside the image at the time of the slider (.mp4, .avi, "
        ".mov, .mkv)",
        title="Behaviour video",
        advanced=False,
        file=True,
    )
    video_times: str = knob(
        "",
        "file of the times of the frames of the video (.csv, .npy)",
        title="Video times",
        file=True,
    )
    video_rate: float = knob(
        0.0,
        "frames per second at which the video was taken (0: as the file says)",
        low=0.0,
        high=1e5,
        title="Video rate (Hz)",
    )
    video_offset: float = knob(
        0.0,
        "seconds to add to the clock of the video to bring it to the imaging clock",
        low=-1e7,
        high=1e7,
        title="Video offset (s)",
    )
    mend_times: bool = knob(
        False,
        "replace frame times in a file that run backwards (up to 1 %) by times between their "
        "neighbours",
    )
    array: str = knob(
        "",
        "name of the array of traces in a file that holds several (.mat, .h5, .npz), such as F, "
        "neuron.traces or trials{3} (empty: find it)",
        title="Array of traces",
    )
    pixel_size: float = knob(
        0.0,
        "micrometres per pixel, for the scale bar (0: as the file says)",
        low=0.0,
        high=1e4,
        title="Pixel size (µm)",
    )
    neuropil: float = knob(
        -1.0, "share of the neuropil to subtract (-1: as the source says)", low=-1.0, high=2.0
    )
    baseline_seconds: float = knob(
        60.0, "length of the running window of the ΔF/F baseline", low=1.0, high=1e4
    )
    baseline_percentile: float = knob(
        10.0, "percentile of the window that is the ΔF/F baseline", low=0.0, high=100.0
    )
    layout: Layout = knob("auto", "order of the axes in an array of traces")
    swap_axes: bool = knob(False, "swap rows and columns of the footprints (NWB, .mat)")
    likelihood: float = knob(
        0.9, "poses less likely than this count as unknown (DeepLabCut, SLEAP)",
        low=0.0, high=1.0,
    )  # fmt: skip
    gap: float = knob(
        0.0,
        "seconds without behaviour that are bridged; longer gaps stay unknown (0: three usual "
        "steps between samples or one frame, whichever is longer)",
        low=0.0,
        high=1e7,
    )
    only: str = knob(
        "", "use only frames with one of these labels: run, maze or state=run, condition=2"
    )
    exclude: str = knob(
        "", "leave out frames with one of these labels: rest, sleep or state=rest, condition=2"
    )

    def __post_init__(self) -> None:
        check_knobs(self)

    def contradicted_by(self, rate: float | None) -> tuple[str, ...]:
        """A sentence if the file says another frame rate than the one given."""
        if not self.rate or not rate or abs(self.rate / rate - 1) < SAME_RATE:
            return ()
        return (
            f"The file says {rate:.4g} frames per second, but `rate` is {self.rate:.4g}, which is "
            "used. Set `rate` to 0 to use that of the file.",
        )
