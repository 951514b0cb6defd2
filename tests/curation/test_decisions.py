import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from napari_xcebra.curation import (
    ACCEPTED,
    REJECTED,
    STATUSES,
    UNDECIDED,
    Curation,
    agreement,
    between,
    with_model,
)
from napari_xcebra.errors import InputError

IDS = [7, 3, 12, 0, 5]


@pytest.fixture
def curation():
    return Curation(IDS, curator="Ann")


def words(curation):
    return [STATUSES[status] for status in curation.status]


def test_a_decision_by_hand_outlives_every_later_threshold(curation):
    curation.decide(1, "rejected")
    curation.decide_above([True] * 5)
    assert words(curation) == ["accepted", "rejected", "accepted", "accepted", "accepted"]
    curation.decide(0, "accepted")
    assert curation.decide_above([True] * 5) is None
    assert curation.by_hand.tolist() == [True, True, False, False, False]


def test_a_threshold_takes_no_decision_back(curation):
    curation.decide_above([True, True, False, False, False], "place")
    curation.decide_above([False, False, False, True, False], "speed")
    assert np.flatnonzero(curation.status == ACCEPTED).tolist() == [0, 1, 3]


def test_a_decision_that_was_taken_back_is_open_to_the_threshold_again(curation):
    curation.decide(1, "rejected")
    curation.decide(1, "undecided")
    curation.decide_above([True] * 5)
    assert curation.status_of(1) == "accepted"
    assert not curation.by_hand[1]


def test_confirming_what_a_threshold_accepted_makes_it_a_decision_by_hand(curation):
    curation.decide_above([True] * 5)
    curation.decide(2, "accepted")
    assert np.flatnonzero(curation.by_hand).tolist() == [2]


def test_many_cells_are_decided_and_undone_in_one_step(curation):
    curation.decide(0, "rejected")
    curation.decide([0, 2, 4], "accepted")
    change = curation.undo()
    assert change.cells.tolist() == [0, 2, 4]
    assert change.sentence == "Accepted 3 cells."
    assert words(curation) == ["rejected", *["undecided"] * 4]


def test_what_changes_nothing_is_no_step(curation):
    curation.decide(0, "accepted")
    assert curation.decide(0, "accepted") is None
    assert curation.decide_above([True, False, False, False, False]) is None
    assert curation.tag(0, "place", on=False) is None
    assert curation.write_note(0, "") is None
    curation.undo()
    assert not curation.can_undo


def test_a_step_holds_only_the_cells_that_changed():
    curation = Curation(np.arange(10_000))
    curation.decide_above(np.arange(10_000) < 5_000)
    moved = curation.decide_above(np.arange(10_000) < 5_003)
    assert moved.cells.tolist() == [5000, 5001, 5002]
    assert all(len(values) == 3 for values in moved.before.values())


def test_a_new_decision_after_undo_ends_what_could_be_redone(curation):
    curation.decide(0, "accepted")
    curation.undo()
    assert curation.can_redo
    curation.decide(1, "accepted")
    assert not curation.can_redo
    assert curation.redo() is None


def test_undo_and_redo_go_through_tags_notes_and_thresholds(curation):
    curation.decide_above([True, True, False, False, False], "place", 0.5)
    curation.tag([0, 1], "place")
    curation.write_note(0, "dendrite?\nlook again")
    end = curation.table()
    while curation.undo():
        pass
    assert (curation.status == UNDECIDED).all()
    assert curation.all_tags == ()
    assert curation.note(0) == ""
    while curation.redo():
        pass
    assert curation.table().equals(end)


def test_a_tag_key_gives_the_tag_to_all_unless_all_have_it(curation):
    curation.tag(0, "red")
    curation.tag([0, 1], "red")
    assert curation.tagged("red").tolist() == [True, True, False, False, False]
    curation.tag([0, 1], "red")
    assert not curation.tagged("red").any()
    assert curation.tags(0) == frozenset()


def test_listeners_hear_which_cells_changed(curation):
    heard = []
    curation.changed.connect(lambda cells: heard.append(cells.tolist()))
    curation.decide([1, 3], "accepted")
    curation.decide([1, 2], "accepted")
    curation.undo()
    curation.redo()
    assert heard == [[1, 3], [2], [2], [2]]


def test_where_nothing_was_decided_the_extractor_has_the_word(curation):
    curation.decide(0, "rejected")
    curation.decide(1, "accepted")
    accepted = curation.accepted(np.array([True, False, True, False, True]))
    assert accepted.tolist() == [False, True, True, False, True]


def test_the_table_has_a_row_for_every_cell_under_its_id(curation):
    curation.decide(1, "rejected")
    curation.decide_above([True, False, False, False, False])
    curation.tag(1, "red")
    curation.tag(1, "place")
    curation.write_note(1, "blurred")
    table = curation.table()
    assert table["cell"].tolist() == IDS
    row = table.iloc[1]
    assert row[["status", "by", "tags", "note", "curator"]].tolist() == [
        "rejected", "hand", "place;red", "blurred", "Ann"]  # fmt: skip
    assert table["by"].tolist() == ["threshold", "hand", "", "", ""]
    assert row["time"] and not table["time"][2]


def test_cells_can_be_given_as_a_mask(curation):
    curation.decide(np.array([False, True, False, False, True]), "rejected")
    assert np.flatnonzero(curation.status == REJECTED).tolist() == [1, 4]


@pytest.mark.parametrize("cells", [5, -1, [0, 99], [0.5]])
def test_a_cell_that_is_not_there_is_refused_in_a_sentence(curation, cells):
    with pytest.raises(InputError, match="cell"):
        curation.decide(cells, "accepted")
    assert not curation.can_undo


def test_a_word_that_is_no_decision_is_refused(curation):
    with pytest.raises(InputError, match="accepted, rejected"):
        curation.decide(0, "maybe")


@pytest.mark.parametrize("text", ["\x00", "two\nlines", " ", "\ud800", "ニューロン"])
def test_a_note_is_kept_as_it_was_written(curation, text):
    curation.write_note(0, text)
    assert curation.note(0) == text


@pytest.mark.parametrize("selected", [[True], [np.nan, 1, 0, 0, 0]])
def test_a_threshold_needs_a_yes_or_no_for_every_cell(curation, selected):
    with pytest.raises(InputError, match="True or False for each of 5"):
        curation.decide_above(selected)


def test_a_decision_that_another_curator_confirms_becomes_theirs(curation):
    curation.decide([0, 1], "accepted")
    curation.curator = "Ben"
    curation.decide(0, "accepted")
    assert curation.table()["curator"].tolist()[:2] == ["Ben", "Ann"]
    curation.undo()
    assert curation.table()["curator"].tolist()[:2] == ["Ann", "Ann"]


NAN = np.nan


def test_kappa_and_table_are_those_of_the_textbook():
    """Cohen's κ of 20, 5, 10, 15 is 0.4."""
    a = np.repeat([1, 1, 0, 0], [20, 5, 10, 15])
    b = np.repeat([1, 0, 1, 0], [20, 5, 10, 15])
    result = agreement(a, b, ("Ann", "Ben"))
    assert result.kappa == pytest.approx(0.4)
    assert result.table.to_numpy().tolist() == [[20, 5], [10, 15]]
    assert (result.table.index.name, result.table.columns.name) == ("Ann", "Ben")
    assert result.agreed == pytest.approx(0.7)
    assert result.sentence.startswith("Ann and Ben agree on 70 % of 50 cells: κ = 0.40")


def test_cells_on_which_one_of_the_two_did_not_decide_do_not_count():
    a, b = [1, 0, 1, NAN, 0], [1, 0, 0, 1, NAN]
    assert agreement(a, b).n_cells == 3
    assert agreement(a, b).kappa == pytest.approx(cohen_kappa_score(a[:3], b[:3]))


def test_the_interval_holds_the_true_value_about_as_often_as_it_says():
    """Curators who both err on a fifth of the cells: κ = 0.36 in the long run."""
    draw = np.random.default_rng(0)
    truth = draw.random((200, 150)) < 0.5
    a, b = (truth ^ (draw.random(truth.shape) < 0.2) for _ in range(2))
    results = [agreement(*pair, seed=i) for i, pair in enumerate(zip(a, b, strict=True))]
    covered = np.mean([result.low <= 0.36 <= result.high for result in results])
    assert 0.9 <= covered <= 0.99


@pytest.mark.parametrize(
    ("a", "b", "word"),
    [
        ([1, 1, 1], [1, 1, 1], "the curator accepted all of these 3 cells"),
        ([0, 0, 0], [1, 0, 1], "the curator rejected all of these 3 cells"),
        ([1, 0, 1], [1, 1, 1], "the model accepted all of these 3 cells"),
        ([NAN, 1], [0, NAN], "no cells on which both"),
        ([], [], "no cells on which both"),
    ],
)
def test_where_kappa_says_nothing_there_is_a_sentence_and_no_number(a, b, word):
    result = agreement(a, b)
    assert np.isnan([result.kappa, result.low, result.high]).all()
    assert word in result.why and word in result.sentence


def test_only_decisions_by_hand_are_held_against_the_model():
    curation = Curation(range(6), curator="Ann")
    curation.decide([0, 1], "accepted")
    curation.decide([2, 3], "rejected")
    curation.decide_above([True] * 6)
    result = with_model(curation, np.array([1, 0, 0, NAN, 1, 1]), "place")
    assert result.table.to_numpy().tolist() == [[1, 1], [0, 1]]
    assert result.names == ("Ann", "the model (place)")


def test_two_curators_are_compared_by_cell_id():
    first, second = Curation([1, 2, 3, 4], curator="Ann"), Curation([4, 3, 2, 99], curator="Ben")
    first.decide([0, 1, 2], "accepted")
    first.decide(3, "rejected")
    second.decide([0, 1], "rejected")
    second.decide([2, 3], "accepted")
    result = between(first, second)
    assert result.table.to_numpy().tolist() == [[1, 1], [0, 1]]
    assert result.names == ("Ann", "Ben")


def test_two_files_of_one_curator_are_told_apart():
    curation = Curation([1], curator="Ann")
    assert between(curation, curation).names == ("Ann (first)", "Ann (second)")


def test_decisions_on_another_number_of_cells_are_refused():
    with pytest.raises(InputError, match="cannot be compared"):
        agreement([1, 0], [1])
