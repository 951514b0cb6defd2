import json
import os
from contextlib import contextmanager, suppress

import numpy as np
import pytest

from napari_xcebra.curation import (
    Curation,
    Journal,
    JournalInUse,
    read_curation,
    summary_of,
)
from napari_xcebra.curation import journal as journal_module
from napari_xcebra.curation.changes import line_of, read_journal
from napari_xcebra.errors import InputError

IDS = np.array([10, 20, 30, 40])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.jsonl"


def opened(path, **others):
    return Curation(IDS, journal=Journal(path, curator="Ann", **others))


def five_steps(path):
    """Accept, reject, undo, tag, note: five lines after the header and the opening."""
    with opened(path) as curation:
        curation.decide(0, "accepted")
        curation.decide([1, 2], "rejected")
        curation.undo()
        curation.tag(3, "place")
        curation.write_note(3, "bright")
    return path.read_bytes().splitlines(keepends=True)


def test_each_decision_is_on_disk_when_the_call_returns(path, monkeypatch):
    with opened(path) as curation:
        flushed = []
        flush = os.fsync
        monkeypatch.setattr(os, "fsync", lambda file: flushed.append(flush(file)))
        curation.decide(2, "accepted")
        assert len(flushed) == 1
        last = json.loads(path.read_bytes().splitlines()[-1])
        assert last["cells"] == [30]
        assert (last["status"], last["curator"]) == ("accepted", "Ann")


def test_an_earlier_session_can_be_undone_after_reopening(path):
    five_steps(path)
    with opened(path) as curation:
        assert curation.undo().sentence == "Wrote a note on cell 40."
        curation.undo()
        assert curation.undo().sentence == "Accepted cell 10."
        assert not curation.can_undo


def test_what_was_undone_and_overwritten_stays_in_the_journal(path):
    five_steps(path)
    steps = read_journal(path).steps
    assert [step["do"] for step in steps] == ["decide", "decide", "undo", "tag", "note"]
    assert steps[1]["cells"] == [20, 30]


def test_decisions_are_found_by_id_when_the_cells_come_in_another_order(path):
    five_steps(path)
    other = Curation(IDS[::-1], journal=Journal(path, read_only=True))
    assert other.status_of(3) == "accepted"
    assert other.note(0) == "bright"


def test_a_torn_line_is_told_once_and_everything_before_it_is_kept(path):
    lines = five_steps(path)
    path.write_bytes(b"".join(lines)[:-9])
    with opened(path) as curation:
        assert len(curation.notes) == 1
        assert "cut off" in curation.notes[0]
        assert curation.tags(3) == {"place"} and curation.note(3) == ""
        curation.write_note(3, "once more")
    assert path.read_bytes().startswith(b"".join(lines)[:-9])
    with opened(path) as curation:
        assert curation.notes == ()
        assert curation.note(3) == "once more"


@pytest.mark.parametrize("line", [2, 3, 4, 5, 6])
def test_a_damaged_line_in_the_middle_costs_that_line_alone(path, line):
    """Undo and redo name their step, so that a lost line does not make them undo another."""
    lines = [*five_steps(path), *five_steps_more(path)]
    lines[line] = b"\xff" + lines[line][1:]
    path.write_bytes(b"".join(lines))
    with opened(path) as curation:
        assert len(curation.notes) == 1
        assert f"damaged in line {line + 1}:" in curation.notes[0]
        accepted = "undecided" if line == 2 else "accepted"
        # without the line that undid it, the rejection is undone by what follows it
        assert curation.status_of(0) == accepted
        assert [curation.status_of(cell) for cell in (1, 2)] == ["undecided"] * 2
        assert curation.tags(3) == (frozenset() if line == 5 else {"place"})
        assert curation.note(3) == ("" if line == 6 else "bright")
        assert curation.tags(0) == {"red"}
    assert path.read_bytes().startswith(b"".join(lines))


def five_steps_more(path):
    """Lines of one more session, with a tag that tells that it was reached."""
    before = path.read_bytes()
    with opened(path) as curation:
        curation.tag(0, "red")
    return path.read_bytes()[len(before) :].splitlines(keepends=True)


@pytest.mark.parametrize(
    "line",
    [
        b'{"do": "decide"}',
        b"[1, 2]",
        b"{}",
        b'{"do": "explode", "curator": "", "time": "2026-11-16T10:00:00"}',
        b'{"do": "undo", "of": "all", "curator": "", "time": "2026-11-16T10:00:00"}',
        b'{"do": "undo", "of": 1, "curator": "", "time": "yesterday"}',
        b"[" * 100_000,
    ],
)
def test_a_line_that_means_nothing_is_passed_over_and_told(path, line):
    lines = five_steps(path)
    path.write_bytes(b"".join([*lines[:3], line + b"\n", *lines[3:]]))
    with opened(path) as curation:
        assert "damaged in line 4:" in curation.notes[0]
        assert curation.note(3) == "bright"


@pytest.mark.parametrize("bit", range(8))
def test_no_flipped_bit_goes_unnoticed(path, bit):
    whole = b"".join(five_steps(path))
    for place in range(bit % 4, len(whole), 4):  # all of them pass, and take half a minute
        flipped = bytearray(whole)
        flipped[place] ^= 1 << bit
        path.write_bytes(flipped)
        with suppress(InputError):  # which tells it as well
            assert opened(path, read_only=True).notes, (place, bytes(flipped))


def test_a_line_that_no_longer_agrees_with_its_check_costs_that_line_and_is_told(path):
    lines = [*five_steps(path), *five_steps_more(path)]
    lines[2] = lines[2].replace(b'"accepted"', b'"rejected"')
    path.write_bytes(b"".join(lines))
    with opened(path) as curation:
        assert "damaged in line 3:" in curation.notes[0]
        assert curation.status_of(0) == "undecided"
        assert curation.note(3) == "bright"


def test_journals_of_earlier_versions_have_no_checks_and_are_continued(path):
    lines = [unchecked(line) for line in five_steps(path)]
    path.write_bytes(b"".join(lines))
    with opened(path) as curation:
        assert curation.notes == ()
        assert curation.note(3) == "bright"
        curation.tag(0, "red")
    assert path.read_bytes().startswith(b"".join(lines))
    with opened(path) as curation:
        assert curation.notes == ()
        assert curation.tags(0) == {"red"}


def unchecked(line):
    """A line as earlier versions wrote it."""
    entry = json.loads(line)
    del entry["check"]
    return json.dumps(entry).encode() + b"\n"


def test_a_damaged_first_line_keeps_the_decisions_and_is_told(path):
    lines = five_steps(path)
    path.write_bytes(b"".join([b"?" + lines[0], *lines[1:]]))
    with opened(path) as curation:
        assert any("which recording" in note for note in curation.notes)
        assert curation.status_of(0) == "accepted"


def test_a_journal_whose_beginning_was_cut_off_twice_is_begun_once_more(path):
    lines = five_steps(path)
    path.write_bytes(lines[0][:4] + b"\n" + lines[0][:9] + b"\0\0")
    with opened(path) as curation:
        curation.decide([0], "accepted")
    with opened(path) as curation:
        assert curation.status_of(0) == "accepted"


def test_a_file_that_is_no_journal_is_left_alone(path):
    path.write_text("cell,score\n1,0.5\n")
    with pytest.raises(InputError, match="not a napari-xcebra journal"):
        opened(path)
    assert path.read_text() == "cell,score\n1,0.5\n"


def test_a_journal_of_a_later_version_is_left_alone(path):
    lines = five_steps(path)
    lines[0] = line_of({**json.loads(unchecked(lines[0])), "format": 99})
    path.write_bytes(b"".join(lines))
    with pytest.raises(InputError, match="later version"):
        opened(path)
    assert path.read_bytes() == b"".join(lines)


def test_a_crash_while_the_first_line_is_written_does_no_harm(path):
    whole = five_steps(path)[0]
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with opened(path) as curation:
            curation.decide(0, "accepted")
        with opened(path) as curation:
            assert curation.status_of(0) == "accepted"


def test_a_journal_in_which_nothing_was_decided_leaves_no_file(path):
    opened(path).close()
    assert not path.exists()


def test_a_journal_whose_only_decision_is_damaged_is_not_removed(path):
    lines = five_steps(path)
    path.write_bytes(b"".join([*lines[:2], b"?" + lines[2]]))
    opened(path).close()
    assert path.read_bytes().startswith(b"".join([*lines[:2], b"?" + lines[2]]))


def test_a_second_window_is_told_and_may_look(path):
    with opened(path) as first:
        first.decide(0, "accepted")
        with pytest.raises(JournalInUse, match=r"by Ann \(this napari on"):
            opened(path)
        second = opened(path, read_only=True)
        assert second.status_of(0) == "accepted"
        with pytest.raises(InputError, match="read-only"):
            second.decide(1, "accepted")
        assert second.status_of(1) == "undecided"
    with opened(path) as second:
        assert second.decide(1, "accepted")


def test_after_closing_nothing_is_decided_unwritten(path):
    curation = opened(path)
    curation.decide(0, "accepted")
    curation.close()
    with pytest.raises(InputError, match="closed"):
        curation.decide(1, "accepted")
    with pytest.raises(InputError, match="closed"):
        curation.undo()
    assert curation.status_of(0) == "accepted"
    assert curation.status_of(1) == "undecided"


@contextmanager
def room_for(length):
    """No file may grow beyond this length, as on a full disk: the rest of a write is refused."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (length, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_told_and_the_decision_not_taken(path):
    with opened(path) as curation:
        curation.decide(0, "accepted")
        before = path.read_bytes()
        with room_for(len(before) + 10):
            with pytest.raises(InputError, match="could not be written"):
                curation.decide(1, "accepted")
            with pytest.raises(InputError, match="could not be written"):
                curation.undo()
        assert path.read_bytes() == before
        assert curation.status.tolist() == [1, 0, 0, 0]
        curation.decide(2, "accepted")
    with opened(path) as curation:
        assert curation.notes == ()
        assert curation.status.tolist() == [1, 0, 1, 0]


def test_a_drive_that_cannot_be_told_to_write_at_once_is_used_all_the_same(path, monkeypatch):
    def not_here(_):
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fsync", not_here)
    with opened(path) as curation:
        assert curation.decide(0, "accepted")


def test_a_journal_that_is_removed_while_it_is_being_opened_is_opened_anew(path, monkeypatch):
    """Else decisions would go to a file without a name."""
    lock, turns = journal_module.lock, iter([True, False])

    def after_the_other_window_closed(file):
        if next(turns):
            path.unlink()
        return lock(file)

    monkeypatch.setattr(journal_module, "lock", after_the_other_window_closed)
    with opened(path) as curation:
        curation.decide(0, "accepted")
    assert summary_of(path).decisions == 1


def test_half_a_line_that_cannot_be_taken_away_at_once_goes_before_the_next(path, monkeypatch):
    def fails(*_):
        raise OSError(5, "Input/output error")

    with opened(path) as curation:
        write = os.write
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", lambda file, line: write(file, line[:10]) and fails())
            patch.setattr(os, "ftruncate", fails)
            with pytest.raises(InputError, match="Input/output"):
                curation.decide(1, "accepted")
        curation.decide(2, "accepted")
    with opened(path) as curation:
        assert curation.notes == ()
        assert curation.status.tolist() == [0, 0, 1, 0]


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be removed there")
def test_a_journal_that_somebody_removes_while_in_use_is_written_again(path):
    with opened(path) as curation:
        curation.decide(0, "accepted")
        path.unlink()
        curation.decide(1, "rejected")
        assert "removed while in use" in curation.notes[0]
        with pytest.raises(JournalInUse):
            opened(path)
    with opened(path) as curation:
        assert curation.status.tolist() == [1, 2, 0, 0]


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be replaced there")
def test_a_journal_that_was_replaced_by_another_is_not_overwritten(path):
    with opened(path) as curation:
        curation.decide(0, "accepted")
        path.rename(path.with_suffix(".old"))
        path.write_text("somebody else's")
        with pytest.raises(InputError, match="replaced"):
            curation.decide(1, "accepted")
    assert path.read_text() == "somebody else's"


def test_where_there_are_no_locks_two_windows_still_do_not_overwrite_each_other(path, monkeypatch):
    def no_locks(_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(journal_module, "lock", no_locks)
    first, second = opened(path), opened(path)
    assert "does not support file locks" in first.notes[0]
    second.decide(0, "accepted")
    with pytest.raises(JournalInUse):
        first.decide(0, "rejected")
    second.close()
    first.close()
    with opened(path) as curation:
        assert curation.status_of(0) == "accepted"


def test_the_summary_counts_what_stands_and_says_who_and_when(path):
    assert summary_of(path) is None
    five_steps(path)
    summary = summary_of(path)
    assert summary.decisions == 3
    assert summary.sentence.startswith("3 decisions by Ann, last on 20")


def test_a_journal_is_read_without_its_recording(path):
    five_steps(path)
    curation = read_curation(path)
    assert curation.cell_ids.tolist() == [10, 20, 30, 40]
    assert curation.curator == "Ann"
    assert curation.status_of(0) == "accepted"


def test_a_decision_by_hand_stands_whatever_the_file_says_of_thresholds(path):
    """A journal that was put together by hand cannot make a threshold win."""
    with opened(path) as curation:
        curation.decide(0, "rejected")
        curation.decide_above([False, True, False, False])
    lines = b"".join(map(unchecked, path.read_bytes().splitlines()))
    path.write_bytes(lines.replace(b'"accepted": [20]', b'"accepted": [10, 20]'))
    with opened(path) as curation:
        assert [curation.status_of(cell) for cell in (0, 1)] == ["rejected", "accepted"]


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_no_decision_is_written_through_a_link(path, tmp_path):
    elsewhere = tmp_path / "thesis.txt"
    path.symlink_to(elsewhere)
    with pytest.raises(InputError, match="is a link to another place"):
        Journal(path)
    assert not elsewhere.exists()
