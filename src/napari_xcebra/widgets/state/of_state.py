"""Ties a service to the state of its window without keeping the state alive."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import ref

if TYPE_CHECKING:
    from napari_xcebra.widgets.state.state import State


class OfState:
    """Belongs to the state of a window, and does not keep it alive."""

    def __init__(self, state: State) -> None:
        self._state = ref(state)

    @property
    def state(self) -> State:
        """The state it belongs to."""
        state = self._state()
        assert state is not None, "the state is gone"
        return state

    @property
    def state_open(self) -> bool:
        """Whether the window is still open, for what was put off until later."""
        state = self._state()
        return state is not None and not state.closed
