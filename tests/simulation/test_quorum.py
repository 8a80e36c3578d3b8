"""Quorums with the faults of their seeds; every planted bug is found; a seed is always the same."""

from __future__ import annotations

import pytest

from pykafka_broker.raft.core import transitions
from pykafka_broker.raft.core.state import Event, Moment, RaftState, RaftStep
from tests.simulation.planted import PLANTED, Planted
from tests.simulation.quorum import Quorum, run
from tests.simulation.violation import Violation

#: In parts, so that several processes can share them. `make simulate` runs as many as asked for.
PARTS, SEEDS_OF_A_PART = 8, 25


@pytest.mark.parametrize("part", range(PARTS))
def test_a_quorum_keeps_what_it_has_committed_whatever_goes_wrong(part: int) -> None:
    for seed in range(part * SEEDS_OF_A_PART, (part + 1) * SEEDS_OF_A_PART):
        run(seed)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.bug)
def test_a_planted_bug_is_found(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    right = vars(planted.owner)[planted.name]
    monkeypatch.setattr(planted.owner, planted.name, planted.wrong(right))

    assert any(fails(seed, planted) for seed in range(planted.seeds))


def fails(seed: int, planted: Planted) -> bool:
    try:
        Quorum(seed, planted.faults).run()
    except Exception:
        # An invariant, or the core itself, which refuses a state that cannot be.
        return True
    return False


def test_a_failing_seed_is_replayed_with_a_transcript(monkeypatch: pytest.MonkeyPatch) -> None:
    planted = next(planted for planted in PLANTED if planted.bug.startswith("observers count"))
    monkeypatch.setattr(planted.owner, planted.name, planted.wrong(vars(planted.owner)[planted.name]))
    seed = next(seed for seed in range(planted.seeds) if fails(seed, planted))

    with pytest.raises(Violation) as first:
        run(seed, planted.faults)
    with pytest.raises(Violation) as second:
        run(seed, planted.faults)

    assert str(first.value) == str(second.value)
    failure, *transcript = str(first.value).splitlines()
    assert failure in f"seed {seed}: {transcript[-1]}", "the transcript ends with the failure"


def test_a_seed_is_always_the_same() -> None:
    transcripts: list[list[str]] = [[], []]
    for transcript in transcripts:
        Quorum(3, transcript=transcript).run()

    assert transcripts[0] == transcripts[1]


def test_the_seeds_see_what_happens_to_quorums(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()
    right = transitions.step

    def step(state: RaftState, event: Event, moment: Moment) -> RaftStep:
        done = right(state, event, moment)
        seen.update(type(record).__name__ for record in done.append)
        seen.update(type(send.request).__name__ for send in done.send)
        seen.add(f"{type(state.role).__name__} to {type(done.state.role).__name__}")
        seen.update(() if done.truncate is None else {"truncation"})
        seen.add(type(event).__name__)
        return done

    monkeypatch.setattr(transitions, "step", step)
    for seed in range(30):
        run(seed)

    assert seen >= {
        "AddVoter",
        "AskVersions",
        "BeginQuorumEpoch",
        "Candidate to Leader",
        "Candidate to Prospective",
        "EndQuorumEpoch",
        "FetchSnapshot",
        "Follower to Prospective",
        "KRaftVersionRecord",
        "Leader to Resigned",
        "Leader to Unattached",
        "Prospective to Follower",
        "Resigned to Prospective",
        "SnapshotInstalled",
        "UpdateVoter",
        "UpgradeKRaftVersion",
        "VotersRecord",
        "truncation",
    }
