"""Ties services to the state of a window, and tells all listeners of a change."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload
from weakref import WeakMethod, ref

if TYPE_CHECKING:
    from napari_xcebra.widgets.state.state import State


Listener = Callable[..., object]


class Signal:
    """Declares a signal of a class; each object of it has its own `Listeners`.

    Parameters
    ----------
    *kinds : type
        Of the values that are emitted.
    """

    def __init__(self, *kinds: type) -> None:
        self._kinds, self._name = kinds, ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, owner: None, kind: type) -> Signal: ...
    @overload
    def __get__(self, owner: object, kind: type) -> Listeners: ...
    def __get__(self, owner: object | None, kind: type) -> Signal | Listeners:
        if owner is None:
            return self
        # found there from now on, before this descriptor
        made = owner.__dict__[self._name] = Listeners()
        return made


class Listeners:
    """Calls everyone who listens, in the order of connecting.

    One that fails stops neither the others nor whoever emits: as from a slot of Qt, its exception
    goes to `sys.excepthook`, by which napari shows it to the user and a test fails.
    """

    def __init__(self) -> None:
        # how to get at each, as methods do not keep their object alive, and the values it takes
        self._entries: list[tuple[Callable[[], Listener | None], int]] = []

    def connect(self, listener: Listener) -> None:
        """Call a function at each emission, with as many of the values as it takes."""
        known = WeakMethod(listener) if inspect.ismethod(listener) else lambda: listener
        self._entries.append((known, _takes(listener)))

    def disconnect(self, listener: Listener) -> None:
        """Call it no more, if it was connected."""
        self._entries = [entry for entry in self._entries if entry[0]() not in (None, listener)]

    def emit(self, *values: Any) -> None:
        """Call all listeners."""
        for entry in list(self._entries):
            listener = entry[0]()
            # what another one disconnected or deleted meanwhile is gone
            if listener is None or entry not in self._entries:
                continue
            try:
                listener(*values[: entry[1]])
            except Exception:
                sys.excepthook(*sys.exc_info())


def _takes(listener: Listener) -> int:
    """How many values a function takes by position."""
    try:
        parameters = inspect.signature(listener).parameters.values()
    except (TypeError, ValueError):  # written in C
        return sys.maxsize
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return sys.maxsize
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in by_position for each in parameters)


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
