"""Quorums with the faults of their seeds; every planted bug is found; a seed is always the same."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from pykafka_broker.machine.illegal_state import IllegalState
from pykafka_broker.raft.core import transitions
from pykafka_broker.raft.core.settings import Settings
from pykafka_broker.raft.core.state import Event, Moment, RaftState, RaftStep
from tests.simulation.core_replica import CORE
from tests.simulation.killed_leader import kill_leader
from tests.simulation.planted import PLANTED, Planted
from tests.simulation.planted_in_shell import PLANTED_IN_SHELL
from tests.simulation.quorum import Quorum, run
from tests.simulation.replica import Kind
from tests.simulation.shell_replica import SHELL
from tests.simulation.violation import Violation
from tests.simulation.wrong import Wrong, plant

pytestmark = pytest.mark.acknowledged

#: In parts, so that several processes can share them. `make simulate` runs as many as asked for.
PARTS, CORE_SEEDS_OF_A_PART, SHELL_SEEDS_OF_A_PART = 8, 25, 6


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """What a log says of damage and cuts is nothing new here."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("part", range(PARTS))
def test_a_quorum_keeps_what_it_has_committed_whatever_goes_wrong(part: int) -> None:
    for seed in range(part * CORE_SEEDS_OF_A_PART, (part + 1) * CORE_SEEDS_OF_A_PART):
        run(seed)


@pytest.mark.parametrize("part", range(PARTS))
def test_so_does_a_quorum_of_drivers_over_files(part: int) -> None:
    for seed in range(part * SHELL_SEEDS_OF_A_PART, (part + 1) * SHELL_SEEDS_OF_A_PART):
        run(seed, kind=SHELL)


@pytest.mark.parametrize("kind, seeds", [(CORE, 100), (SHELL, 20)], ids=["core", "shell"])
def test_when_a_leader_is_killed_the_others_elect_at_once_and_in_one_round(kind: Kind, seeds: int) -> None:
    for seed in range(seeds):
        kill_leader(seed, kind)


def test_voters_that_all_stand_at_the_same_moment_would_split_the_votes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Settings, "election_in_order_ms", lambda self, now_ms, chance, place: now_ms)
    with pytest.raises(Violation, match="the first round elected none"):
        for seed in range(100):
            kill_leader(seed)


@pytest.mark.parametrize("planted", PLANTED + PLANTED_IN_SHELL, ids=lambda planted: planted.bug)
def test_a_planted_bug_is_found(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(planted.wrongs, monkeypatch)
    seed = next((seed for seed in range(planted.seeds) if fails(seed, planted)), None)
    assert seed is not None
    monkeypatch.undo()
    run(seed, planted.faults, planted.kind)  # it is the bug that fails


def fails(seed: int, planted: Planted) -> bool:
    try:
        Quorum(seed, planted.faults, planted.kind).run()
    except (Violation, IllegalState):
        # An invariant, or the core itself, which refuses a state that cannot be.
        return True
    return False


def test_no_bug_is_planted_in_a_private_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="_take is private"):
        plant([Wrong(transitions, "_take", lambda right: right)], monkeypatch)


@pytest.mark.parametrize(
    "bug", ["observers count for the high watermark", "what was appended during a sync counts as synced"]
)
def test_a_failing_seed_is_replayed_with_a_transcript(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = next(planted for planted in PLANTED + PLANTED_IN_SHELL if planted.bug == bug)
    plant(planted.wrongs, monkeypatch)
    seed = next(seed for seed in range(planted.seeds) if fails(seed, planted))

    with pytest.raises(Violation) as first:
        run(seed, planted.faults, planted.kind)
    with pytest.raises(Violation) as second:
        run(seed, planted.faults, planted.kind)

    assert str(first.value) == str(second.value)
    failure, *transcript = str(first.value).splitlines()
    assert failure in f"{planted.kind.name} seed {seed}: {transcript[-1]}", (
        "the transcript ends with the failure"
    )


@pytest.mark.parametrize("kind", [CORE, SHELL], ids=lambda kind: kind.name)
def test_a_seed_is_always_the_same(kind: Kind) -> None:
    transcripts: list[list[str]] = [[], []]
    for transcript in transcripts:
        Quorum(3, {"power_cut": 0.001}, kind, transcript=transcript).run()

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
