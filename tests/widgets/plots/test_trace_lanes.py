"""Lanes say in the words of the user what their values are."""

import numpy as np

from napari_xcebra.attribution.single_cell.tuning import Column
from napari_xcebra.widgets.plots.trace_lanes import behavior_lane


def test_the_lane_of_a_category_is_labelled_with_its_words():
    side = Column("side", np.array([0, 1, 1, np.nan]), "discrete", words=("left", "right"))
    assert behavior_lane(side, None, "").ticks == {0.0: "left", 1.0: "right"}
    numbered = Column("context", np.array([0, 1, 3.0]), "discrete")
    assert behavior_lane(numbered, None, "").ticks == {0.0: "0", 3.0: "3"}
