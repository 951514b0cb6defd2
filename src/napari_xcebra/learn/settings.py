"""Every setting of a training run: default, bounds and one line of help.

The form in the dock, the flags of the command line and the saved file are made from
`FitSettings`; this module imports neither torch nor Qt, so that they open quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from napari_xcebra.errors import InputError
from napari_xcebra.settings import check_knobs, choices_of, knob, known_only

Mode = Literal["hybrid", "behavior", "time", "supervised"]
Similarity = Literal["euclidean", "dot", "power"]
Temperature = Literal["matched", "fixed", "learned"]
Penalty = Literal["auto", "exact", "projected"]
Network = Literal["fitted", "published"]
TimeWeights = Literal["learned", "fixed"]


@dataclass(frozen=True)
class FitSettings:
    """Settings of one training run; every field has a default, bounds and help.

    Examples
    --------
    >>> FitSettings(steps=200, seed=3).steps
    200
    >>> FitSettings(batch_size=1)
    Traceback (most recent call last):
    ...
    napari_xcebra.errors.InputError: `batch_size` is 1: 16 or more is needed.
    """

    mode: Mode = knob(
        "hybrid",
        "hybrid: behaviour factors plus latents for the unobserved state; behavior: "
        "behaviour factors alone; time: no behaviour; supervised: regression, as a baseline",
        advanced=False,
    )
    time_latents: int = knob(
        2, "latents for what was not observed (hybrid and time)", low=1, high=64, advanced=False
    )
    steps: int = knob(400, "training steps, at most", low=1, high=1_000_000, advanced=False)
    stop_when_settled: bool = knob(
        True,
        "take fewer steps on a short recording, and stop early once neither maps nor losses change",
    )
    lambda_: float | Literal["auto"] = knob(
        "auto",
        "how strongly the model is kept simple, which its map needs: weight λ of the "
        "Jacobian penalty. auto finds the highest at which InfoNCE (the loss) stays "
        "at its minimum; 0 turns it off",
        low=0.0,
        high=100.0,
        title="λ",
        advanced=False,
        number=1.0,
    )
    seed: int = knob(0, "the same seed gives the same result", low=0, high=2**31 - 1)
    window: int = knob(1, "frames the encoder sees at once", low=1, high=200)
    smoothing: float = knob(
        0.25, "Gaussian smoothing of the traces, in seconds (0: none)", low=0.0, high=60.0
    )
    time_offset: int = knob(
        0,
        "frames between the two members of a time pair (0: the slowest factor's label step)",
        low=0,
        high=10_000,
    )
    label_offset: int = knob(
        0,
        "frames over which a label takes its step (0: as many as a step of `label_step` needs)",
        low=0,
        high=10_000,
    )
    label_step: float = knob(
        0.3, "size of a label's step, in standard deviations of the label", low=0.01, high=2.0
    )
    batch_size: int = knob(
        512,
        "frames per step, also the number of negatives (at most half of the training frames)",
        low=16,
        high=65_536,
    )
    balance: bool = knob(
        True, "draw rare values of a discrete variable as often as the others, for part of a batch"
    )
    learning_rate: float = knob(0.002, "step size of Adam at its peak", low=1e-6, high=1.0)
    decay: float = knob(
        0.1, "learning rate at the end, as a share of its peak (cosine decay)", low=0.0, high=1.0
    )
    settle: float = knob(
        0.1, "share of the steps with λ = 0, while InfoNCE settles", low=0.0, high=1.0
    )
    readout: float = knob(
        10.0,
        "weight of a linear readout of the variables from their latents, beside InfoNCE; with it "
        "a factor begins as a ridge regression (0: InfoNCE alone, as in the paper)",
        low=0.0,
        high=1e4,
    )
    hide: float = knob(
        0.5,
        "largest share of the cells hidden from the encoder during training, drawn anew for every "
        "frame, so that it relies on no single cell; less where a regression predicts the "
        "variables nearly perfectly (0: none)",
        low=0.0,
        high=0.9,
    )
    deconvolve: bool = knob(
        True,
        "undo the delay and decay of the indicator by one filter for all cells, where that helps "
        "a regression to predict the variables",
    )
    ramp: float = knob(0.1, "share of the steps over which a given λ is raised", low=0.0, high=1.0)
    search: float = knob(
        0.35, "share of the steps over which λ is raised to find it (λ auto)", low=0.05, high=1.0
    )
    penalty: Penalty = knob(
        "auto", "exact: all outputs; projected: random ones; auto: the cheaper of the two"
    )
    penalty_batch: int = knob(
        64, "frames of the batch on which the penalty is computed", low=1, high=65_536
    )
    projections: int = knob(2, "random projections of the projected penalty", low=1, high=64)
    similarity: Similarity = knob(
        "euclidean", "euclidean: −‖·‖²; dot: on the sphere; power: −‖·‖ᵖ summed over latents"
    )
    power: float = knob(1.0, "exponent p of the power similarity", low=0.1, high=10.0)
    temperature: Temperature = knob(
        "matched",
        "matched: to the variance of the label's steps; fixed: to `temperature_value`; learned",
    )
    temperature_value: float = knob(
        1.0, "temperature τ where it is fixed, and where learning starts", low=1e-4, high=1e4
    )
    time_weights: TimeWeights = knob(
        "learned",
        "weight of each factor's latents in the time objective; fixed: 1, as in the paper",
    )
    include_positive: bool = knob(
        True, "count the positive pair in the sum of InfoNCE (bounded below; the paper does not)"
    )
    network: Network = knob(
        "fitted",
        "fitted: as many hidden units as the recording can fill, with small first weights; "
        "published: 30, 30 and 10 units a latent with the usual weights and a clip at `bound`, as "
        "in the reference",
    )
    hidden_units: int = knob(
        0,
        "units of the first hidden layers (0: as `network` has them)",
        low=0,
        high=8192,
    )
    bound: float = knob(20.0, "bound of the embedding (scaled tanh)", low=0.5, high=1e4)
    held_out: float = knob(
        0.2, "share of the frames kept from training to measure the fit", low=0.05, high=0.5
    )
    blocks: int = knob(8, "number of contiguous blocks of held-out frames", low=2, high=100)
    accepted_only: bool = knob(True, "use accepted cells only", advanced=False)
    device: str = knob("auto", "auto, cpu, cuda, cuda:1, mps …")
    threads: int = knob(
        1,
        "processor threads (0: the first steps find the fastest number; the last digits of a "
        "result then depend on it)",
        low=0,
        high=256,
    )

    def __post_init__(self) -> None:
        check_knobs(self)
        then = "search" if self.lambda_ == "auto" else "ramp"
        shares = self.settle + getattr(self, then)
        if shares > 1:
            raise InputError(
                f"`settle` + `{then}` is {shares:g}: the two shares of the steps must not exceed 1."
            )

    @classmethod
    def paper(cls, **changes: Any) -> FitSettings:
        """XCEBRA as published: Eqs. 8–10 as written, and nothing beside them.

        Training in the paper takes 20,000 steps of 5,000 frames, λ rising from step 2,500 to 5,000;
        the same shares of fewer and smaller steps are the default here. What remains different is
        listed in the docs, under "The method".

        Parameters
        ----------
        **changes
            Fields to set to something else, such as ``steps=20_000, batch_size=5000``.

        Examples
        --------
        >>> FitSettings.paper(seed=3).include_positive
        False
        """
        published: dict[str, Any] = {
            "steps": 2000,
            "stop_when_settled": False,
            "lambda_": 0.1,
            "smoothing": 0.0,
            "time_offset": 1,
            "label_offset": 1,
            "balance": False,
            "learning_rate": 0.003,
            "decay": 1.0,
            "settle": 0.125,
            "ramp": 0.125,
            "readout": 0.0,
            "hide": 0.0,
            "deconvolve": False,
            "penalty": "exact",
            "penalty_batch": 65_536,
            "temperature": "fixed",
            "time_weights": "fixed",
            "include_positive": False,
            "network": "published",
            "bound": 5.0,
            "held_out": 0.05,
            "blocks": 4,
        }
        return cls(**{**published, **changes})

    @property
    def negatives(self) -> int:
        """N of the training's InfoNCE: its chance level is log N."""
        return self.batch_size - 1 + self.include_positive

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FitSettings:
        """Settings from a file; knobs that a later version added keep their default.

        Knobs that this version does not know are ignored: a file written by a later version can
        still be read.
        """
        return cls(**known_only(cls, values))

    @staticmethod
    def choices(name: str) -> tuple[str, ...]:
        """Admissible values of a knob that is a choice, else an empty tuple."""
        return choices_of(FitSettings, name)


PRESETS: Mapping[str, Callable[..., FitSettings]] = {
    "default": FitSettings,
    "paper": FitSettings.paper,
}
"""Settings to begin with, by name; each takes what is to be different."""

PRESET_HELP = (
    "settings to begin with: default, adapted to noisy recordings; paper, xCEBRA as published"
)
