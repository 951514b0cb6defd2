"""When Python looks for garbage among everything there is."""

from __future__ import annotations

import gc


def collect_while_waiting() -> None:
    """Look for it now, while the user waits for something to open anyway.

    With napari loaded it takes 0.2 s, and Python does so once enough new objects are there: mostly
    when a recording and the docks were opened, and the next layer comes, in the middle of training.
    Having looked, it will not do so again before there are as many new ones.
    """
    gc.collect()
