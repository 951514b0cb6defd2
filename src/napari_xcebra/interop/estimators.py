"""Estimators in the manner of scikit-learn, for scripts that used the `cebra` package.

They follow its conventions (`fit`, `transform`, `score`, `get_params`) and do not import it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from scipy.spatial import cKDTree

from napari_xcebra.errors import InputError
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
            estimator_type="regressor" if decodes else None,
            target_tags=utils.TargetTags(required=decodes),
            transformer_tags=None if decodes else utils.TransformerTags(),
            regressor_tags=utils.RegressorTags() if decodes else None,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def _checked(self, x: Any, *, fitting: bool = False) -> np.ndarray:
        """Rows of numbers, with as many columns as were fitted."""
        name, rows = type(self).__name__, np.asarray(x)
        if rows.ndim != 2 or rows.dtype.kind not in "fiub":
            raise InputError(
                f"X has shape {rows.shape} and type {rows.dtype}: {name} needs numbers in "
                "(frames, columns)."
            )
        if not np.isfinite(rows).all():
            raise InputError("X holds NaN or infinite values: fill them in or leave them out.")
        if fitting:
            self.n_features_in_ = rows.shape[1]
        elif not hasattr(self, "n_features_in_"):
            raise InputError(f"This {name} is not fitted yet: call `fit` first.")
        elif rows.shape[1] != self.n_features_in_:
            raise InputError(
                f"X has {rows.shape[1]} features, but {name} is expecting {self.n_features_in_} "
                "features as input."
            )
        return rows.astype(np.float64)


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

    def fit(self, X: Any, *y: Any) -> Self:
        """Train on traces, (frames, cells), and labels, (frames,) or (frames, columns) each."""
        labels = [np.asarray(each) for each in y if each is not None]
        if self.latents is not None and len(self.latents) != len(labels):
            raise InputError(
                f"`latents` has {len(self.latents)} entries and there are {len(labels)} labels: "
                "one for each is needed."
            )
        traces = self._checked(X, fitting=True)
        behavior = {f"label {n}": _variable(f"label {n}", each) for n, each in enumerate(labels)}
        self.recording_ = Recording.from_arrays(traces, self.rate, behavior)
        counts = self.latents or [None] * len(labels)
        factors = {name: Factor([name], n) for name, n in zip(behavior, counts, strict=True)}
        own = {n: v for n, v in self.get_params().items() if n not in ("rate", "latents", "preset")}
        own = {name: value for name, value in own.items() if value is not None}
        settings = PRESETS[self.preset](**own, mode="hybrid" if labels else "time")
        self.fit_ = fit(self.recording_, factors, settings)
        embedding = self.transform(X)
        self._readouts = [
            LinearDecoder().fit(embedding[:, self.fit_.part(name).latents], labels[n])
            for n, name in enumerate(behavior)
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

    def fit_transform(self, X: Any, *y: Any) -> np.ndarray:
        """`fit`, then `transform`."""
        return self.fit(X, *y).transform(X)

    def score(self, X: Any, *y: Any) -> float:
        """Mean over labels of R², or accuracy if discrete, of a linear readout of their latents.

        Without labels, the nats above chance on the held-out frames of its training.
        """
        embedding = self.transform(X)
        labels = [np.asarray(each) for each in y if each is not None]
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
        if len(label) != len(rows):
            raise InputError(f"X has {len(rows)} frames and y {len(label)}: they need as many.")
        self.classes_ = None if label.dtype.kind == "f" else np.unique(label)
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
        found = self._read(self._checked(X))
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
