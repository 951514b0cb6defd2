"""Reads and writes the `.pt` files of the `cebra` package; reading runs nothing.

A `.pt` file is a pickle, which can name any function to be called. Torch reads it here in the mode
that admits tensors and plain containers alone, in the limited child of `io.guard`; what else
`CEBRA.save` writes stands for classes of ours that only hold values. A name beside these ends the
reading.
"""

from __future__ import annotations

import io
import pickle
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.torch_version import TorchVersion

from napari_xcebra.errors import InputError, refusal
from napari_xcebra.files import in_a_sentence, open_file, whole
from napari_xcebra.learn.data.factors import TIME
from napari_xcebra.learn.model.cebra_encoder import CLIPS, CebraEncoder, in_order
from napari_xcebra.learn.result import Fit

VERSION = "0.6.1"
"""Version of `cebra` whose files these are."""
_KEY = re.compile(r"(?:(\d+)\.)?(?:module\.)?((?:net|classifier)\..+)")
_NAMED = re.compile(r"GLOBAL ([\w.]+)")


class _Offset:
    """Stands for `cebra.data.Offset`."""

    def __init__(self, left: int = 0, right: int = 1) -> None:
        self.left, self.right = left, right

    def __getstate__(self) -> Any:
        return None, {"left": self.left, "right": self.right}  # as of a class with slots

    def __setstate__(self, state: Any) -> None:
        pass


class _TypeCode:
    """Stands for `numpy.dtype`: the code of a type, nothing that numpy would act upon."""

    def __init__(self, code: Any, *_: Any) -> None:
        self.code = str(code)

    def __setstate__(self, state: Any) -> None:
        pass


def _scalar(dtype: _TypeCode, content: Any = b"") -> Any:
    """Stands for the function that makes a single number of numpy."""
    if not re.fullmatch(r"[?]|b1|[iu][1248]|f[248]", dtype.code) or not isinstance(content, bytes):
        raise pickle.UnpicklingError("a single number of numpy is not one")
    return np.frombuffer(content, np.dtype(dtype.code), count=1)[0].item()


_ADMITTED: list[Any] = [
    (_Offset, "cebra.data.datatypes.Offset"),
    (_TypeCode, "numpy.dtype"),
    (_scalar, "numpy._core.multiarray.scalar"),
    (_scalar, "numpy.core.multiarray.scalar"),
    TorchVersion,
]
"""All that a file may name beside tensors and containers."""


@dataclass(frozen=True)
class CebraModel:
    """A file of `cebra`, checked.

    Parameters
    ----------
    architecture : str
    sessions : tuple of mapping of str to array
        Weights of each session's encoder, as `CebraEncoder` names them.
    arguments : mapping of str to value
        What ``CEBRA(…)`` was called with; empty for the state of a plain solver.
    labels : tuple of tuple of (int, int)
        Of each session, the frames and columns of its labels; none for a model of time alone.
    losses : (steps,) float64
    hybrid : bool
        Whether behaviour owns the first latents and time all of them.
    version : str
        Of `cebra`; empty if the file does not say.
    """

    architecture: str
    sessions: tuple[Mapping[str, np.ndarray], ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    labels: tuple[tuple[tuple[int, int], ...], ...] = ()
    losses: np.ndarray = field(default_factory=lambda: np.zeros(0))
    hybrid: bool = False
    version: str = ""


def read_cebra_model(path: str | PathLike[str], architecture: str = "") -> CebraModel:
    """Read a `.pt` file of `CEBRA.save`, or the state of a solver or of a model.

    Parameters
    ----------
    path : path
    architecture : str
        Where the file does not name it.
    """
    path = Path(path)
    content = _loaded(path)
    if not isinstance(content, Mapping):
        raise _no_model(path, f"it holds a {type(content).__name__}")
    whole_estimator = {"args", "state", "state_dict"} <= set(content)
    try:
        if whole_estimator:
            return _of_estimator(path, content, architecture)
        return _of_solver(path, content, architecture, {}, {})
    except InputError:
        raise
    # values of another kind than they should be fail in many ways
    except Exception as error:
        raise _no_model(path, f"{type(error).__name__}: {error}") from error


def _loaded(path: Path) -> Any:
    try:
        with open_file(path) as file, torch.serialization.safe_globals(_ADMITTED):
            return torch.load(file, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputError(f"{path} cannot be read, because {refusal(error)}.") from error
    except pickle.UnpicklingError as error:
        named = _NAMED.search(str(error))
        if named is None:
            raise _no_model(path, "it is no file of torch, or damaged") from error
        if named[1].startswith(("cebra.", "sklearn.")):
            raise InputError(
                f"{path.name} holds a whole Python object ({named[1]}), which cannot be opened "
                'without running it: load it in cebra and save it again with backend="sklearn".'
            ) from error
        raise InputError(
            f"{path.name} asks for {named[1]}, which the weights of a model do not need and which "
            "could run anything: it was not opened."
        ) from error
    except Exception as error:
        raise _no_model(path, "it is no file of torch, or damaged") from error


def _no_model(path: Path, why: str) -> InputError:
    return InputError(
        f"{path.name} is not a model that cebra saved ({' '.join(why.split())[:150]}): a .pt file "
        "of CEBRA.save, or the state of a solver, is needed."
    )


def _of_estimator(path: Path, content: Mapping[str, Any], architecture: str) -> CebraModel:
    arguments, state = dict(content["args"]), content["state"]
    named = str(arguments["model_architecture"])
    if architecture not in ("", named):
        raise InputError(f"{path.name} holds the architecture {named}, not {architecture}.")
    several = state["num_sessions_"] is not None
    indices = state["label_types_"]
    shapes = [[index[n] for index in indices] for n in range(state["num_sessions_"])] if several \
        else [indices]  # fmt: skip
    labels = tuple(tuple(_size(shape) for _, shape in each) for each in shapes)
    about = {"labels": labels, "hybrid": state["solver_name_"] == "single-session-hybrid"}
    about["version"] = str(content.get("metadata", {}).get("cebra_version", ""))
    return _of_solver(path, content["state_dict"], named, arguments, about)


def _size(shape: tuple[int, ...]) -> tuple[int, int]:
    return int(shape[0]), int(shape[1]) if len(shape) > 1 else 1


def _of_solver(
    path: Path,
    solver: Mapping[str, Any],
    architecture: str,
    arguments: dict[str, Any],
    about: dict[str, Any],
) -> CebraModel:
    weights = solver["model"] if isinstance(solver.get("model"), Mapping) else solver
    by_session: dict[int, dict[str, np.ndarray]] = {}
    for key, value in weights.items():
        match = _KEY.fullmatch(str(key))
        if match is None or not isinstance(value, Tensor):
            raise _no_model(path, f"{key!r} is no layer of its models")
        if match[2].startswith("net."):
            by_session.setdefault(int(match[1] or 0), {})[match[2]] = _array(path, key, value)
    if not by_session:
        raise _no_model(path, "it has no weights")
    if not architecture:
        raise InputError(
            f"{path.name} holds weights without the name of their architecture: name it, such as "
            "`architecture` offset10-model."
        )
    sessions = tuple(
        _checked(path, architecture, by_session[number]) for number in sorted(by_session)
    )
    criterion = solver.get("criterion", {})
    if isinstance(learned := criterion.get("log_inverse_temperature"), Tensor):
        arguments["temperature"] = float(torch.exp(-learned))
    losses = solver["loss"].double().flatten().numpy() if "loss" in solver else np.zeros(0)
    about.setdefault("version", str(solver.get("version", "")))
    return CebraModel(architecture, sessions, arguments, losses=losses, **about)


def _array(path: Path, key: str, value: Tensor) -> np.ndarray:
    """Weights as they are; a tensor may claim to be larger than what it holds."""
    if value.device.type != "cpu" or value.layout != torch.strided or not value.is_contiguous():
        raise _no_model(path, f"{key} is no plain array")
    return value.detach().float().numpy()


def _checked(
    path: Path, architecture: str, weights: Mapping[str, np.ndarray]
) -> Mapping[str, np.ndarray]:
    """Weights with what stands before and behind the layers, if they fit the architecture."""
    first, last = in_order(weights)[0], in_order(weights, "bias")[-1]
    plain: dict[str, np.ndarray] = {
        "mean": np.zeros(first.shape[1], np.float32),
        "spread": np.ones(first.shape[1], np.float32),
        "order": np.arange(len(last)),
    }
    found: dict[str, np.ndarray] = {**weights, **plain}
    with torch.device("meta"):
        needed = CebraEncoder.like(architecture, found).state_dict()
    for name in sorted(needed.keys() | found.keys()):
        shapes = [tuple(each[name].shape) if name in each else None for each in (found, needed)]
        if shapes[0] != shapes[1]:
            raise InputError(
                f"{path.name} does not hold weights of {architecture}: {name} has shape "
                f"{shapes[0] or '(missing)'}, and {shapes[1] or 'no such layer'} is needed."
            )
        if not np.isfinite(found[name]).all():
            raise InputError(f"{path.name} holds weights that are no numbers ({name}).")
    return found


def save_cebra(fit: Fit, path: str | PathLike[str]) -> Path:
    """Write the encoder of a fit as a `.pt` file that ``cebra.CEBRA.load`` opens.

    For models that were opened from one, and for fits with ``FitSettings.paper()``, whose network
    `cebra` has. What it computes from raw traces is then the embedding of the fit, except where a
    trace is beyond 10 standard deviations, at which fits clip their inputs.

    Parameters
    ----------
    fit : Fit
    path : path
        Ending in `.pt`.
    """
    architecture, layers = _layers(fit)
    latents, cells = fit.parts[-1].stop, len(fit.inputs.cell_ids)
    units = len(in_order(layers)[0])
    encoder = CebraEncoder(architecture, cells, units, latents)
    parts = [part for part in fit.parts if part.name != TIME]
    settings = fit.settings
    similarity = fit.parts[0].similarity
    if similarity == "power":
        raise InputError("cebra has no `similarity` power: this fit cannot be written for it.")
    arguments = {
        "model_architecture": architecture,
        "device": "cpu",
        "criterion": "infonce",
        "distance": "cosine" if similarity == "dot" else "euclidean",
        "conditional": "time_delta" if parts else None,
        "temperature": float(fit.parts[0].temperature),
        "temperature_mode": "constant",
        "min_temperature": 0.1,
        "time_offsets": int(fit.parts[-1].offset),
        "delta": None,
        "max_iterations": settings.steps,
        "max_adapt_iterations": 500,
        "batch_size": settings.batch_size,
        "learning_rate": settings.learning_rate,
        "optimizer": "adam",
        "output_dimension": latents,
        "verbose": False,
        "num_hidden_units": units,
        "pad_before_transform": True,
        "hybrid": False,
        "optimizer_kwargs": (
            ("betas", (0.9, 0.999)), ("eps", 1e-8), ("weight_decay", 0), ("amsgrad", False)
        ),
        "masking_kwargs": None,
    }  # fmt: skip
    window, float64 = encoder.window, np.dtype("float64")
    state = {
        "label_types_": [(float64, (0, len(part.variables))) for part in parts],
        "device_": "cpu",
        "n_features_": cells,
        "n_features_in_": cells,
        "num_sessions_": None,
        "offset_": _Offset(window // 2, window - window // 2),
        "solver_name_": "single-session",
    }
    losses = [float(loss) for loss in fit.history.get(fit.parts[0].name, ())]
    solver = {
        "model": OrderedDict((name, torch.tensor(value)) for name, value in layers.items()),
        "optimizer": torch.optim.Adam(encoder.net.parameters()).state_dict(),
        "loss": torch.tensor(losses),
        "decode": [],
        "criterion": OrderedDict(),
        "version": VERSION,
        "log": {"pos": [], "neg": [], "total": losses, "temperature": []},
        "n_features": cells,
    }
    metadata = {
        "backend": "sklearn",
        "cebra_version": VERSION,
        "torch_version": str(torch.__version__),
        "numpy_version": np.__version__,
        "sklearn_version": "",
    }
    content = {"args": arguments, "state": state, "state_dict": solver, "metadata": metadata}
    written, naming = io.BytesIO(), ModuleType("naming")
    vars(naming)["Pickler"] = _CebraPickler
    torch.save(content, written, pickle_module=naming)
    path = Path(path)
    with in_a_sentence(path), whole(path) as temporary:
        temporary.write_bytes(written.getvalue())
    return path


class _CebraPickler(pickle.Pickler):
    """Names the class of `cebra` that a stand-in is for, which need not be installed."""

    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self._written = file

    def dump(self, obj: Any) -> None:
        super().dump(obj)
        ours = f"c{__name__}\n{_Offset.__name__}\n".encode()
        content = self._written.getvalue().replace(ours, b"ccebra.data.datatypes\nOffset\n")
        self._written.seek(0)
        self._written.write(content)
        self._written.truncate()


def _layers(fit: Fit) -> tuple[str, dict[str, np.ndarray]]:
    """Architecture of a fit in `cebra`, and its layers for raw traces, under their names there."""
    if fit.architecture:
        return fit.architecture, {n: w for n, w in fit.weights.items() if n.startswith("net.")}
    latents, bound, settings = fit.parts[-1].stop, fit.settings.bound, fit.settings
    weights = [fit.weights[f"layers.{n}.weight"] for n in range(4)] if settings.window == 1 else []
    widths = [len(weight) for weight in weights]
    filtered = fit.inputs.smoothing > 0 or not fit.inputs.filter.does_nothing
    if (
        settings.network != "published"
        or widths != [30 * latents, 30 * latents, 10 * latents, latents]
        or bound not in CLIPS
        or filtered
    ):
        raise InputError(
            "cebra has no network like that of this fit: one trained with FitSettings.paper(), "
            f"with `window` 1, `smoothing` 0 and a `bound` of {', '.join(map(str, CLIPS))}, can be "
            "written for it."
        )
    layers = {}
    for number in range(4):
        layers[f"net.{2 * number + 1}.weight"] = weights[number]
        layers[f"net.{2 * number + 1}.bias"] = fit.weights[f"layers.{number}.bias"]
    scaled = weights[0] / fit.inputs.scale.astype(np.float64)
    layers["net.1.bias"] = (layers["net.1.bias"] - scaled @ fit.inputs.mean).astype(np.float32)
    layers["net.1.weight"] = scaled.astype(np.float32)
    return f"offset1-model-mse-clip-{bound:g}-{bound:g}", layers
