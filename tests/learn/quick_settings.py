"""Settings that train on a small box model in a second."""

from napari_xcebra.learn.settings import FitSettings


def quick(**changes):
    """Settings of a short run."""
    knobs = {
        "steps": 30,
        "batch_size": 128,
        "time_latents": 2,
        "hidden_units": 32,
        "smoothing": 0,
        "lambda_": 0.05,
        "device": "cpu",
    }
    return FitSettings(**(knobs | changes))
