import numpy as np
import pytest

from napari_xcebra.curation import ORDERS, CellFilter, Queue, centroids_of, ordered
from napari_xcebra.curation.order import _walk, disagreement
from napari_xcebra.errors import InputError
from napari_xcebra.recording.footprints import Footprints

IDS = np.array([5, 1, 9, 3])
NAN = np.nan


def test_cells_whose_rank_moves_most_with_the_seed_come_first():
    spread = np.array([0, 5, np.nan, 5])
    score = np.array([9.0, 1.0, 8.0, 2.0])
    assert ordered("instability", np.arange(4), score=score, spread=spread).tolist() == [3, 1, 0, 2]


def test_the_highest_score_comes_first_and_cells_without_one_last():
    assert ordered("score", IDS, score=[0.2, NAN, 0.9, 0.2]).tolist() == [2, 3, 0, 1]


def test_the_lowest_q_comes_first_and_the_score_settles_ties():
    q, score = [0.5, 0.01, 0.01, NAN], [9.0, 1.0, 2.0, 99.0]
    assert ordered("q-value", IDS, score=score, q=q).tolist() == [2, 1, 0, 3]


def test_cells_on_which_score_and_extractor_disagree_most_come_first():
    """The second best score has the lowest probability; the best has the highest."""
    score = [4.0, 3.0, 2.0, 1.0]
    probability = [0.99, 0.01, 0.9, 0.5]
    assert ordered("disagreement", IDS, score=score, extractor=probability)[0] == 1
    assert disagreement(score, probability)[0] == 0


def test_disagreement_also_works_with_a_class_and_without_some_scores():
    apart = disagreement(np.array([4.0, 3.0, NAN, 1.0]), np.array([False, True, True, True]))
    assert np.isnan(apart[2])
    assert np.argmax(np.nan_to_num(apart)) == 0


def test_a_random_order_depends_on_its_seed_alone():
    first = IDS[ordered("random", IDS, seed=3)]
    assert first.tolist() == IDS[::-1][ordered("random", IDS[::-1], seed=3)].tolist()
    orders = {tuple(ordered("random", np.arange(20), seed=seed)) for seed in range(5)}
    assert len(orders) == 5


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("known", [True, False])
def test_every_order_has_every_cell_once_whatever_is_known(order, known):
    draw = np.random.default_rng(0)
    facts = {name: draw.random(50) for name in ("score", "q", "extractor")}
    facts["centroids"] = draw.random((50, 2))
    for values in facts.values():
        values[::7] = NAN
    found = ordered(order, np.arange(50), **(facts if known else {}))
    assert sorted(found.tolist()) == list(range(50))


def test_an_order_that_is_not_known_is_refused_in_a_sentence():
    with pytest.raises(InputError, match="score, q-value"):
        ordered("beauty", IDS)


@pytest.mark.parametrize("shape", [(512, 512), (100, 2000), (2000, 100)])
def test_on_a_walk_neighbours_follow_each_other(shape):
    """Within half of the best known bound for a random field (0.7124 √(n·area) for n cells)."""
    places = np.random.default_rng(1).random((1000, 2)) * shape
    way = places[_walk(places)]
    length = np.hypot(*np.diff(way, axis=0).T).sum()
    assert length < 1.5 * 0.7124 * np.sqrt(1000 * shape[0] * shape[1])


def test_a_walk_does_one_plane_after_the_other_and_cells_without_a_place_last():
    places = np.array([[1, 0, 0], [0, 5, 5], [NAN, NAN, NAN], [1, 9, 9], [0, 0, 0]])
    way = _walk(places)
    assert way[-1] == 2
    assert places[way[:-1], 0].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("places", [np.zeros((0, 2)), np.zeros((3, 2)), np.arange(6).reshape(3, 2)])
def test_a_walk_through_few_or_equal_places_has_them_all(places):
    assert sorted(_walk(places).tolist()) == list(range(len(places)))
    in_a_line = places * [1, 0]
    assert sorted(_walk(in_a_line).tolist()) == list(range(len(places)))


def test_centroids_are_weighted_and_a_cell_without_pixels_has_none():
    cell, row, column = np.array([0, 0, 2]), np.array([0, 4, 1]), np.array([3, 3, 2])
    weight = np.array([3, 1, 1], np.float32)
    centres = centroids_of(Footprints((5, 5), cell, row, column, weight), 4)
    assert centres[0].tolist() == [1, 3]
    assert centres[2].tolist() == [1, 2]
    assert np.isnan(centres[[1, 3]]).all()


def test_a_filter_keeps_what_has_all_that_is_asked_for():
    status = np.array([0, 1, 2, 1])
    selected = np.array([True, True, False, False])
    tagged = np.array([False, True, True, True])
    assert CellFilter().keep(status).all()
    assert CellFilter(("accepted",)).keep(status).tolist() == [False, True, False, True]
    assert CellFilter(above=False).keep(status, selected).tolist() == [False, False, True, True]
    both = CellFilter(("accepted", "rejected"), above=False, tag="place")
    assert both.keep(status, selected, tagged).tolist() == [False, False, True, True]


def test_a_cell_that_falls_out_of_the_filter_does_not_make_the_queue_jump():
    """Rejecting cell after cell in a queue of undecided ones visits each exactly once."""
    status, order = np.zeros(8, int), np.array([3, 1, 4, 0, 5, 2, 6, 7])
    undecided = CellFilter(("undecided",))
    queue = Queue(order, undecided.keep(status))
    visited, cell = [], queue.next()
    while cell is not None:
        visited.append(cell)
        status[cell] = 2
        queue = queue.with_keep(undecided.keep(status))
        cell = queue.next(cell)
    assert visited == order.tolist()


def test_going_back_finds_the_cell_before_the_current_one():
    keep = np.array([True, False, True, True])
    queue = Queue(np.array([2, 1, 0, 3]), keep)
    assert len(queue) == 3
    assert queue.previous(3) == 0
    assert queue.previous(1) == 2, "also from a cell that is filtered out"
    assert queue.previous(2) is None
    assert (queue.next(), queue.previous()) == (2, 3)
    assert queue.next(3) is None
    assert [queue.number(cell) for cell in (2, 0, 3)] == [0, 1, 2]


def test_an_empty_queue_has_no_next_cell():
    queue = Queue(np.arange(3), np.zeros(3, bool))
    assert (queue.next(), queue.previous(), queue.next(1), len(queue)) == (None, None, None, 0)
