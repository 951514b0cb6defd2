import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from napari_xcebra.curation import Curation, agreement, between, with_model
from napari_xcebra.errors import InputError

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
