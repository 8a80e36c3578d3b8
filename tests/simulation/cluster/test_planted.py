"""Every mistake that is planted into the nodes of a cluster is found, and it is the mistake that is found."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.simulation.cluster.cluster import Cluster, run
from tests.simulation.cluster.planted import PLANTED, Planted
from tests.simulation.wrong import plant

#: Quick ones, which run with all other tests.
QUICK = frozenset(
    {
        "the end of the log goes back with a new leader",
        "acks=all is answered before replication",
        "a broker whose session is over is not fenced",
    }
)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """What a log says of lost connections and leaders is nothing new here."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def _parameter(planted: Planted) -> object:
    marks = () if planted.bug in QUICK else pytest.mark.slow
    return pytest.param(planted, id=planted.bug, marks=marks)


@pytest.mark.parametrize("planted", [_parameter(planted) for planted in PLANTED])
def test_a_planted_bug_is_found(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(planted.wrongs, monkeypatch)
    seeds = sorted(range(planted.seeds), key=lambda seed: seed != planted.found_by)
    seed = next((seed for seed in seeds if _finds(seed, planted)), None)
    assert seed is not None
    monkeypatch.undo()
    run(seed, planted.faults)  # it is the bug that fails


def _finds(seed: int, planted: Planted) -> bool:
    try:
        Cluster(seed, planted.faults).run()
    except (TypeError, AttributeError, NameError):
        # The bug is planted wrongly.
        raise
    except Exception as error:
        # An invariant, or a node that refuses a state that cannot be.
        return planted.says in str(error)
    return False
