"""The registry of methods."""

import subprocess
import sys
from dataclasses import replace

import pytest

from napari_xcebra.attribution import methods
from napari_xcebra.attribution.methods import (
    DEFAULT,
    EVERY,
    METHODS,
    OVER_TIME,
    consensus_of,
    method_named,
)

SLOW = ["integrated-gradients", "feature-ablation", "shapley-zeros", "shapley-shuffled"]


def decisions():
    """All that the program decides by a method."""
    named = {name: method_named(name) for name in (*METHODS, *map(consensus_of, METHODS))}
    return {
        name: (m.slow, m.latents, m.fitted, m.share, m.frames, m.over_time, m.function)
        for name, m in named.items()
    }


def test_no_decision_depends_on_the_words_of_a_note(monkeypatch):
    before = decisions()
    silent = {n: replace(m, note="") for n, m in methods.REGISTRY.items()}
    monkeypatch.setattr(methods, "REGISTRY", silent)
    assert list(methods.REGISTRY) == list(METHODS)
    assert decisions() == before
    assert {method_named(name).note for name in METHODS} == {""}


def test_slow_methods_use_one_frame_in_ten():
    assert [name for name in METHODS if method_named(name).slow] == SLOW
    for name in METHODS:
        wanted = slice(None, None, EVERY) if name in SLOW else None
        assert method_named(name).frames == wanted


@pytest.mark.parametrize("name", METHODS)
def test_every_method_can_be_computed_and_tells_users_what_it_does(name):
    about = method_named(name)
    assert callable(about.compute)
    assert about.note.endswith(".")
    assert about.help.startswith(f"{about.note} Takes ")
    assert method_named(about.over_time).compute_local is not None


def test_both_routes_score_whole_factors_as_shares():
    routes = ["both-routes", "conditional-encoding", "generative-gradient"]
    assert [name for name in METHODS if not method_named(name).latents] == routes
    assert [name for name in METHODS if method_named(name).share] == routes
    assert method_named(DEFAULT).over_time == OVER_TIME


def test_a_consensus_has_no_scores_of_single_latents():
    consensus = method_named(consensus_of("shapley-zeros"))
    assert not consensus.latents
    assert not consensus.slow
    assert "shapley zeros" in consensus.note


def test_listing_the_methods_takes_no_torch():
    program = "import sys, napari_xcebra.attribution.methods; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "False"
