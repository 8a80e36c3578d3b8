"""Random conversations, held with our broker twice: nothing is left in them that every run says otherwise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interop.conformance.play import OUR_SETTINGS, Verdict, judge, play, side_of
from interop.conformance.wander import WALKS, cases
from pykafka_broker.testing.processes import PykafkaBroker


@pytest.mark.parametrize("about", WALKS)
def test_a_walk_repeats_itself_and_a_spoilt_answer_is_noticed(about: str) -> None:
    with PykafkaBroker(OUR_SETTINGS) as one, PykafkaBroker(OUR_SETTINGS) as other:
        for case, sabotaged, verdict in zip(
            cases([about], seed=7, walks=2, steps=15),
            (False, True),
            (Verdict.EQUAL, Verdict.DIFFERENT),
            strict=True,
        ):
            here, there = play(case, side_of(one)), play(case, replace(side_of(other), sabotaged=sabotaged))
            assert judge(case, here, there, ()).verdict is verdict
