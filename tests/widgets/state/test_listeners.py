"""Signals of the state reach every listener."""

import gc
import sys

import pytest

from napari_xcebra.widgets.state.signals import Signal


class Told:
    changed = Signal(int, str)


class Listener:
    def __init__(self):
        self.heard = []

    def hear(self, number):
        self.heard.append(number)


def test_one_that_fails_is_reported_and_stops_neither_the_others_nor_the_emitter(monkeypatch):
    told, heard, reported = Told(), [], []
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, _: reported.append(str(error)))

    def fails():
        raise IndexError("cell 64 of 58")

    told.changed.connect(lambda: heard.append("first"))
    told.changed.connect(fails)
    told.changed.connect(lambda: heard.append("last"))
    told.changed.emit(1, "one")
    assert heard == ["first", "last"] and reported == ["cell 64 of 58"]


@pytest.mark.parametrize("values", [(), (1,), (1, "one")])
def test_a_listener_gets_as_many_values_as_it_takes(values):
    told, heard = Told(), []
    takes = {0: lambda: heard.append(()), 1: lambda a: heard.append((a,))}
    told.changed.connect(takes.get(len(values), lambda *all_of_them: heard.append(all_of_them)))
    told.changed.emit(1, "one")
    assert heard == [values]


def test_a_listener_that_is_gone_or_let_go_hears_no_more():
    told, one, other = Told(), Listener(), Listener()
    told.changed.connect(one.hear)
    told.changed.connect(other.hear)
    told.changed.disconnect(one.hear)
    told.changed.emit(1, "")
    assert (one.heard, other.heard) == ([], [1])
    heard = other.heard
    del other
    gc.collect()
    told.changed.emit(2, "")
    assert heard == [1]


def test_one_that_another_disconnects_meanwhile_is_not_called():
    told, late = Told(), Listener()
    told.changed.connect(lambda: told.changed.disconnect(late.hear))
    told.changed.connect(late.hear)
    told.changed.emit(1, "")
    assert late.heard == []


def test_each_object_has_listeners_of_its_own():
    one, other, heard = Told(), Told(), []
    one.changed.connect(lambda: heard.append("one"))
    other.changed.emit(1, "")
    assert heard == []
