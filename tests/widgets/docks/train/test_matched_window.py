"""Cells that another program found on several days are compared in the window."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.io
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.runs import Run, now
from napari_xcebra.widgets.docks.train.dock import TrainDock

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]
QUICK = FitSettings(steps=5, batch_size=64, time_latents=1, seed=0)


def test_days_matched_by_cellreg_are_compared_and_named_by_their_day(
    viewer, state, small_field, made_up_scores, tmp_path, qtbot
):
    dock = TrainDock(viewer)
    viewer.window.add_dock_widget(dock, name="Train")
    assert dock.choice.days.isHidden()
    for day in ("2024-05-02", "2024-05-01"):
        recording = replace(small_field, source=str(tmp_path / day / "suite2p" / "plane0"))
        state.show(recording)
        trained = fit(recording, {"place": ["position"], "speed": ["speed"]}, QUICK)
        scores = made_up_scores(recording)
        state.add_run(Run("run 1", now(), {}, trained, {scores.method: scores}))
    # cell 5 of the first day is cell 6 of the second, and so on; CellReg counts from 1
    index = np.stack([np.arange(1, 21), np.r_[np.arange(2, 21), 0]], axis=1)
    path = tmp_path / "cellRegistered_20240601.mat"
    scipy.io.savemat(path, {"cell_registered_struct": {"cell_to_index_map": index.astype(float)}})

    assert not dock.choice.days.isHidden()
    QTest.mouseClick(dock.choice.days, Qt.MouseButton.LeftButton)
    window = dock.choice.days.opened
    assert list(window.chosen) == ["2024-05-01", "2024-05-02"]
    # without a file, cells are proposed by where they lie: here each is the same
    assert window.compare.text() == "Propose and compare"
    QTest.mouseClick(window.compare, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: window.found is not None, timeout=20_000)
    assert (window.found.matching.ids[:, 0] == window.found.matching.ids[:, 1]).all()
    window.found = None
    window.file.path = path
    QTest.mouseClick(window.compare, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: window.found is not None, timeout=20_000)
    headers = [window.table.horizontalHeaderItem(i).text() for i in range(2)]
    assert headers == ["2024-05-01", "2024-05-02"]
    assert window.table.rowCount() == 19
    assert "place: scores of the 19 matched cells correlate between sessions" in (
        window.summary.text()
    )
    assert window.table.item(0, 0).text().endswith("(cell 18)")
    assert window.table.item(0, 1).text().endswith("(cell 19)")
    window.table.selectRow(0)
    ids = np.asarray(state.current.recording.cell_ids)[state.selection]
    assert ids.tolist() == [18]  # in front is the first day

    window.file.path = tmp_path / "nowhere.mat"
    QTest.mouseClick(window.compare, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "does not exist" in window.notice.text, timeout=20_000)
    assert window.table.rowCount() == 0
    window.close()
