"""Recordings on which the stored models of `cebra` were trained; run as a script, it makes these.

.venv-bench/bin/python tests/interop/cebra_recordings.py
"""

from pathlib import Path

import numpy as np

SAVED = Path(__file__).parent / "saved"
FRAMES = 1600


def session(cells: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Traces (frames, cells), and a label (frames,) that every other cell carries."""
    rng = np.random.default_rng(seed)
    steps = rng.standard_normal(FRAMES + 20)
    label = np.convolve(steps, np.hanning(20), "same")[10:-10] / 2
    slopes = rng.uniform(0.5, 1.0, cells) * (np.arange(cells) % 2 == 0)
    traces = label[:, None] * slopes + 0.7 * rng.standard_normal((FRAMES, cells))
    return (20 + 3 * traces).astype(np.float32), label.astype(np.float32)


def main() -> None:
    """Train with `cebra` 0.6.1, and save what it saves."""
    import cebra
    import torch

    torch.manual_seed(0)
    common = dict(
        batch_size=256, learning_rate=3e-3, output_dimension=3, num_hidden_units=8, device="cpu"
    )
    traces, label = session(8, 0)
    windowed = cebra.CEBRA("offset5-model", max_iterations=200, time_offsets=2, **common)
    windowed.fit(traces, label[:, None])
    windowed.save(SAVED / "window.pt")
    # a user who z-scores first
    standard = (traces - traces.mean(0)) / traces.std(0)
    scored = cebra.CEBRA(
        "offset1-model-mse-v2-1layers", distance="euclidean", max_iterations=200, **common
    ).fit(standard, label[:, None])
    scored.save(SAVED / "z-scored.pt")
    timed = cebra.CEBRA("offset1-model", max_iterations=50, **common).fit(traces)
    timed.save(SAVED / "time.pt")
    torch.save(timed.solver_.state_dict(), SAVED / "solver.pt")
    pairs = [session(5, 1), session(6, 2)]
    several = cebra.CEBRA("offset1-model", max_iterations=50, **common)
    several.fit([x for x, _ in pairs], [y[:, None] for _, y in pairs])
    several.save(SAVED / "sessions.pt")
    np.savez_compressed(
        SAVED / "embeddings.npz",
        window=windowed.transform(traces)[100:150],
        scored=scored.transform(standard)[100:150],
        time=timed.transform(traces)[100:150],
        sessions=several.transform(pairs[1][0], session_id=1)[100:150],
    )


if __name__ == "__main__":
    main()
