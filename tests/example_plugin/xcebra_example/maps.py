"""Scores cells by the square of the Jacobian, and shows what may go wrong."""

from napari_xcebra.attribution.methods import Method

SQUARED = Method(
    "squared-gradient",
    "The square of the Jacobian.",
    "xcebra_example.computing:squared_gradient",
    unit="mean J², arbitrary units",
)
NO_METHOD = "words"
TAKEN = Method("neuron-gradient", "Another one.", "xcebra_example.computing:squared_gradient")
FAILING = Method("failing", "Fails.", "xcebra_example.computing:failing")
