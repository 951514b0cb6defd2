"""Estimators in the manner of scikit-learn, for scripts that used the `cebra` package.

They follow its conventions (`fit`, `transform`, `score`, `get_params`) and do not import it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from scipy.spatial import cKDTree

from napari_xcebra.errors import InputError
from napari_xcebra.learn.adaptation import STEPS, adapt
from napari_xcebra.learn.data.factors import Factor
from napari_xcebra.learn.fitting import fit
from napari_xcebra.learn.objective.ridge import logistic, regressed
from napari_xcebra.learn.settings import PRESETS
from napari_xcebra.recording import Recording, Variable

if TYPE_CHECKING:
    from napari_xcebra.learn.result import Fit


class _Estimator:
    """Parameters by the names of the constructor, which clones are made by."""

    _kind = "transformer"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Values of all parameters."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **values: Any) -> Self:
        """Change parameters, which takes effect with the next `fit`."""
        for name, value in values.items():
            if name not in self._names():
                raise InputError(
                    f"{type(self).__name__} has no parameter {name!r}; it has "
                    f"{', '.join(self._names())}."
                )
            setattr(self, name, value)
        return self

    @classmethod
    def _names(cls) -> list[str]:
        return list(inspect.signature(cls).parameters)

    def __repr__(self) -> str:
        usual = {n: p.default for n, p in inspect.signature(type(self)).parameters.items()}
        own = [f"{n}={v!r}" for n, v in self.get_params().items() if v is not usual[n]]
        return f"{type(self).__name__}({', '.join(own)})"

    def __sklearn_tags__(self) -> Any:
        utils = import_module("sklearn.utils")  # it is there if this is asked for
        decodes = self._kind == "decoder"
        return utils.Tags(
            estimator_type=None,  # a decoder is a regressor or a classifier, as its label is
            target_tags=utils.TargetTags(required=decodes, multi_output=decodes),
            transformer_tags=None if decodes else utils.TransformerTags(preserves_dtype=[]),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def _checked(self, x: Any, *, fitting: bool = False) -> np.ndarray:
        """Rows of numbers, with as many columns as were fitted."""
        name = type(self).__name__
        if not fitting and not hasattr(self, "n_features_in_"):
            raise _not_fitted(f"This {name} is not fitted yet: call `fit` first.")
        if hasattr(x, "toarray"):
            raise InputError(f"X is sparse: {name} needs a dense array; pass `X.toarray()`.")
        rows = np.asarray(x)
        if rows.dtype.kind == "c":
            raise InputError(f"Complex data not supported: {name} needs real numbers.")
        if rows.dtype.kind == "O":
            rows = rows.astype(np.float64)
        if rows.ndim != 2 or rows.dtype.kind not in "fiub":
            raise InputError(
                f"X has shape {rows.shape} and type {rows.dtype}: {name} needs numbers in "
                "(frames, columns). Reshape your data, with X[:, None] if it is one column."
            )
        for number, what in zip(rows.shape, ("sample", "feature"), strict=True):
            if number == 0:
                raise InputError(
                    f"Found array with 0 {what}(s) (shape={rows.shape}) while a minimum of 1 is "
                    "required."
                )
        if not np.isfinite(rows).all():
            raise InputError("X holds NaN or infinite values: fill them in or leave them out.")
        if fitting:
            self.n_features_in_ = rows.shape[1]
        elif rows.shape[1] != self.n_features_in_:
            raise InputError(
                f"X has {rows.shape[1]} features, but {name} is expecting {self.n_features_in_} "
                "features as input."
            )
        return rows.astype(np.float64)


def _not_fitted(sentence: str) -> InputError:
    """An error that scikit-learn knows, where it is loaded."""
    known = getattr(sys.modules.get("sklearn.exceptions"), "NotFittedError", None)
    return type("NotFitted", (InputError, known), {})(sentence) if known else InputError(sentence)


class XCEBRA(_Estimator):
    """An encoder trained on traces, and labels if there are any, as an estimator.

    Labels are read by their type: floats are continuous, anything else is discrete. Each is a
    factor with latents of its own, called "label 0", "label 1" …; without labels the encoder learns
    what lasts over time.

    Parameters
    ----------
    rate : float
        Frames a second.
    time_latents : int
        Latents for what is not in the labels.
    latents : sequence of int, optional
        Latents of each label; as many as it has dimensions if not given.
    steps, lambda_, window, smoothing, time_offset, batch_size, learning_rate, seed, device
        As in `FitSettings`; None for its default.
    preset : {"default", "paper"}
        Settings to begin with.

    Attributes
    ----------
    fit_ : Fit
        For ``attribute(model.fit_, model.recording_)`` and all else.
    recording_ : Recording

    Examples
    --------
    >>> from napari_xcebra.simulate import box
    >>> recording = box(frames=3000).recording
    >>> labels = recording.variable("z2").values
    >>> XCEBRA(steps=20).fit(recording.traces, labels).transform(recording.traces).shape
    (3000, 4)
    """

    def __init__(
        self,
        rate: float = 10.0,
        time_latents: int = 2,
        latents: Any = None,
        steps: int | None = None,
        lambda_: float | Literal["auto"] | None = None,
        window: int | None = None,
        smoothing: float | None = None,
        time_offset: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        seed: int = 0,
        device: str | None = None,
        preset: Literal["default", "paper"] = "default",
    ) -> None:
        self.rate, self.time_latents, self.latents = rate, time_latents, latents
        self.steps, self.lambda_, self.window, self.smoothing = steps, lambda_, window, smoothing
        self.time_offset, self.batch_size = time_offset, batch_size
        self.learning_rate, self.seed = learning_rate, seed
        self.device, self.preset = device, preset
        self.fit_: Fit
        self.recording_: Recording

    def fit(self, X: Any, y: Any = None, *more: Any) -> Self:
        """Train on traces, (frames, cells), and labels, (frames,) or (frames, columns) each."""
        labels = _given(y, *more)
        if self.latents is not None and len(self.latents) != len(labels):
            raise InputError(
                f"`latents` has {len(self.latents)} entries and there are {len(labels)} labels: "
                "one for each is needed."
            )
        behavior = self._recorded(self._checked(X, fitting=True), labels)
        counts = self.latents or [None] * len(labels)
        factors = {name: Factor([name], n) for name, n in zip(behavior, counts, strict=True)}
        own = {n: v for n, v in self.get_params().items() if n not in ("rate", "latents", "preset")}
        own = {name: value for name, value in own.items() if value is not None}
        settings = PRESETS[self.preset](**own, mode="hybrid" if labels else "time")
        self.fit_ = fit(self.recording_, factors, settings)
        return self._read_out(X, labels)

    def partial_fit(self, X: Any, y: Any = None, *more: Any) -> Self:
        """Go on training with more frames of the same cells and labels; at first as `fit`.

        Frames of earlier calls are not kept: `fit_` and `recording_` are of the last ones, on which
        goodness is measured.
        """
        if not hasattr(self, "n_features_in_"):
            return self.fit(X, y, *more)
        labels = _given(y, *more)
        if len(labels) != len(self._readouts):
            raise InputError(f"{len(labels)} labels were given: {len(self._readouts)} are needed.")
        self._recorded(self._checked(X), labels)
        self.fit_ = adapt(self.fit_, self.recording_, "all-layers", steps=self.steps or STEPS)
        return self._read_out(X, labels)

    def _recorded(self, traces: np.ndarray, labels: list[np.ndarray]) -> dict[str, Variable]:
        """Labels as variables of a recording, which is kept."""
        for number, what in zip(traces.shape, ("sample", "feature"), strict=True):
            if number == 1:
                raise InputError(f"X has 1 {what}(s): an encoder needs many frames and cells.")
        behavior = {f"label {n}": _variable(f"label {n}", each) for n, each in enumerate(labels)}
        self.recording_ = Recording.from_arrays(traces, self.rate, behavior)
        return behavior

    def _read_out(self, X: Any, labels: list[np.ndarray]) -> Self:
        embedding = self.transform(X)
        self._readouts = [
            LinearDecoder().fit(embedding[:, part.latents], label)
            for part, label in zip(self.fit_.parts, labels, strict=False)
        ]
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Embedding of each frame: (frames, latents), those of the labels in turn, then of time.

        At either end, where a window reaches beyond, the first and last frames are repeated.
        """
        traces = self._checked(X)
        before = self.fit_.settings.window // 2
        after = self.fit_.settings.window - 1 - before
        padded = np.pad(traces, ((before, after), (0, 0)), mode="edge")
        embedding = self.fit_.embed(Recording.from_arrays(padded, self.rate))
        return embedding[before : len(embedding) - after]

    def fit_transform(self, X: Any, y: Any = None, *more: Any) -> np.ndarray:
        """`fit`, then `transform`."""
        return self.fit(X, y, *more).transform(X)

    def score(self, X: Any, y: Any = None, *more: Any) -> float:
        """Mean over labels of R², or accuracy if discrete, of a linear readout of their latents.

        Without labels, the nats above chance on the held-out frames of its training.
        """
        embedding = self.transform(X)
        labels = _given(y, *more)
        if not labels:
            return float(next(iter(self.fit_.goodness.values())).goodness)
        if len(labels) != len(self._readouts):
            raise InputError(f"{len(labels)} labels were given: {len(self._readouts)} are needed.")
        parts = self.fit_.parts
        each = [
            readout.score(embedding[:, part.latents], label)
            for readout, part, label in zip(self._readouts, parts, labels, strict=False)
        ]
        return float(np.mean(each))


class _LatentDecoder(_Estimator):
    """Predicts labels from an embedding: numbers if they are floats, else classes."""

    _kind = "decoder"

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from an embedding, (frames, latents), and its label."""
        rows, label = self._checked(X, fitting=True), np.asarray(y)
        if y is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        if label.dtype.kind == "f" and not np.isfinite(label).all():
            raise InputError("y holds NaN or infinite values: leave those frames out.")
        if len(label) != len(rows):
            raise InputError(f"X has {len(rows)} frames and y {len(label)}: they need as many.")
        discrete = label.dtype.kind != "f"
        if discrete and label.ndim == 2 and label.shape[1] == 1:
            label = label[:, 0]
        self.classes_ = np.unique(label) if discrete else None
        self._learn(rows, label)
        return self

    def _learn(self, rows: np.ndarray, label: np.ndarray) -> None:
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        """Label at each frame."""
        raise NotImplementedError

    def score(self, X: Any, y: Any) -> float:
        """R², or accuracy of classes."""
        found, label = self.predict(X), np.asarray(y)
        if self.classes_ is not None:
            return float(np.mean(found == label))
        missed = np.square(label - found).sum()
        total = np.square(label - label.mean(0)).sum()
        return float(1 - missed / total) if total > 0 else float("nan")


class LinearDecoder(_LatentDecoder):
    """Ridge regression of a continuous label, logistic regression of a discrete one.

    Parameters
    ----------
    penalty : float
        On squared weights, in variances of a column.
    """

    def __init__(self, penalty: float = 1e-4) -> None:
        self.penalty = penalty

    def _learn(self, rows: np.ndarray, label: np.ndarray) -> None:
        self._read: Callable[[np.ndarray], np.ndarray]
        if self.classes_ is None:
            self._shape = label.shape[1:]
            self._read = regressed(rows, label.reshape(len(label), -1), self.penalty)
        else:
            code = np.searchsorted(self.classes_, label)
            self._read = logistic(rows, code, len(self.classes_), self.penalty)

    def predict(self, X: Any) -> np.ndarray:  # noqa: D102
        rows = self._checked(X)
        found = self._read(rows)
        if self.classes_ is not None:
            return self.classes_[found.argmax(1)]
        return found.reshape(len(found), *self._shape)


class KNNDecoder(_LatentDecoder):
    """The mean label, or the commonest, of the nearest frames of the embedding.

    Parameters
    ----------
    n_neighbors : int
    metric : {"cosine", "euclidean"}
    """

    def __init__(
        self, n_neighbors: int = 3, metric: Literal["cosine", "euclidean"] = "cosine"
    ) -> None:
        self.n_neighbors, self.metric = n_neighbors, metric

    def _placed(self, rows: np.ndarray) -> np.ndarray:
        if self.metric == "euclidean":
            return rows
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)

    def _learn(self, rows: np.ndarray, label: np.ndarray) -> None:
        self._tree, self._label = cKDTree(self._placed(rows)), label

    def predict(self, X: Any) -> np.ndarray:  # noqa: D102
        rows = self._placed(self._checked(X))
        nearest = self._tree.query(rows, k=np.arange(1, self.n_neighbors + 1))[1]
        if self.classes_ is None:
            return np.asarray(self._label[nearest].mean(1))
        code = np.searchsorted(self.classes_, self._label[nearest])
        votes = (code[:, :, None] == np.arange(len(self.classes_))).sum(1)
        return self.classes_[votes.argmax(1)]


def _given(*labels: Any) -> list[np.ndarray]:
    return [np.asarray(each) for each in labels if each is not None]


def _variable(name: str, label: np.ndarray) -> Variable:
    """A label by its type, as `cebra` reads it."""
    if label.dtype.kind == "f":
        return Variable(name, label)
    if label.ndim != 1:
        raise InputError(
            f"A label of type {label.dtype} has shape {label.shape}: discrete labels have one "
            "value a frame; make it floats if it is continuous."
        )
    return Variable(name, np.unique(label, return_inverse=True)[1].astype(float), "discrete")
