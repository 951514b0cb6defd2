"""Events of the mouse as napari hands them to callbacks."""

from types import SimpleNamespace

import numpy as np
from napari.utils._proxies import ReadOnlyWrapper


def event(kind, position, pos, modifiers, button=1):
    return ReadOnlyWrapper(
        SimpleNamespace(
            type=kind,
            position=position,
            pos=np.array(pos),
            modifiers=modifiers,
            button=button,
            view_direction=None,
            handled=False,
            is_dragging=kind == "mouse_move",
        )
    )
