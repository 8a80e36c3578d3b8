"""A partition that another broker leads: what an answer of the leader makes of it."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest

from pykafka_broker.log.disk.checkpoints import EpochEntry
from pykafka_broker.log.partition.leader_epochs import LeaderEpochs
from pykafka_broker.machine.step import Start, Step
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.replication.core.fetch_session import PartitionFetch
from pykafka_broker.replication.core.following import (
    Answer,
    Append,
    AskLeaderEnd,
    AskLeaderStart,
    EpochEnd,
    Following,
    Phase,
    StartAt,
    TruncateTo,
    at_log_end,
    fetched,
    follow,
    is_due,
    leader_end_told,
    leader_start_told,
    truncation_offset,
)

NOW_MS, RETRY_MS = 1_000, 2_000
NONE = ErrorCode.NONE


class Log(NamedTuple):
    log_end_offset: int
    high_watermark: int
    epochs: LeaderEpochs


def log(*epochs: tuple[int, int], end: int = 100, high_watermark: int | None = None) -> Log:
    """A log up to `end`; `epochs` are (epoch, start offset)."""
    entries = LeaderEpochs(EpochEntry(epoch, offset) for epoch, offset in epochs)
    return Log(end, end if high_watermark is None else high_watermark, entries)


FOLLOWED = log((3, 0), (5, 60))
FOLLOWING = Following(7, 100, 5)
ASKED = PartitionFetch(7, 100, 5, 0)


def test_a_log_is_fetched_from_its_end_with_its_newest_epoch() -> None:
    assert follow(7, FOLLOWED) == Step(FOLLOWING)


def test_a_log_without_epochs_is_cut_at_its_high_watermark_before_it_is_fetched() -> None:
    assert follow(7, log(end=100, high_watermark=80)) == Step(
        Following(7, 100, -1), effects=(Start(TruncateTo(80)),)
    )


def test_a_damaged_log_is_cut_before_the_damage_and_gets_the_rest_from_its_leader() -> None:
    step = follow(7, FOLLOWED, damaged_from=70)
    assert step == Step(FOLLOWING, effects=(Start(TruncateTo(70)),))


def test_the_leaders_records_are_appended_with_its_offsets() -> None:
    step = fetched(FOLLOWING, ASKED, Answer(NONE), FOLLOWED, RETRY_MS)

    assert step == Step(FOLLOWING, effects=(Start(Append()),))
    assert at_log_end(step.state, log((3, 0), (5, 60), (7, 100), end=120)) == Following(7, 120, 7)


@pytest.mark.parametrize("asked", [ASKED._replace(leader_epoch=6), ASKED._replace(fetch_offset=90)])
def test_an_answer_about_another_epoch_or_offset_says_nothing(asked: PartitionFetch) -> None:
    assert fetched(FOLLOWING, asked, Answer(NONE), FOLLOWED, RETRY_MS) == Step(FOLLOWING)


@pytest.mark.parametrize(
    "diverging, offset",
    [
        (EpochEnd(5, 80), 80),  # both know epoch 5, which ended earlier at the leader
        (EpochEnd(3, 70), 60),  # it ended earlier here
        (EpochEnd(4, 70), 60),  # not known here: its predecessor's end, and then another question
        (EpochEnd(3, 40), 40),
    ],
)
def test_a_diverging_log_is_cut_where_the_last_epoch_in_common_ends(diverging: EpochEnd, offset: int) -> None:
    step = fetched(FOLLOWING, ASKED, Answer(NONE, diverging=diverging), FOLLOWED, RETRY_MS)

    assert step == Step(FOLLOWING, effects=(Start(TruncateTo(offset)),))


def test_a_follower_beyond_the_leaders_end_is_cut_there() -> None:
    out_of_range = fetched(FOLLOWING, ASKED, Answer(ErrorCode.OFFSET_OUT_OF_RANGE), FOLLOWED, RETRY_MS)
    assert out_of_range.effects == (Start(AskLeaderEnd()),)

    told = leader_end_told(out_of_range.state, NONE, 70, FOLLOWED, RETRY_MS)

    assert told.effects == (Start(TruncateTo(70)),)
    assert at_log_end(told.state, log((3, 0), (5, 60), end=70)) == Following(7, 70, 5)


def test_a_follower_before_the_leaders_start_begins_anew_there() -> None:
    out_of_range = fetched(FOLLOWING, ASKED, Answer(ErrorCode.OFFSET_OUT_OF_RANGE), FOLLOWED, RETRY_MS)
    end_told = leader_end_told(out_of_range.state, NONE, 500, FOLLOWED, RETRY_MS)
    assert end_told.effects == (Start(AskLeaderStart()),)

    start_told = leader_start_told(end_told.state, NONE, 300, FOLLOWED, RETRY_MS)

    assert start_told.effects == (Start(StartAt(300)),)
    assert at_log_end(start_told.state, log(end=300)) == Following(7, 300, -1)


def test_a_follower_inside_the_leaders_log_that_was_out_of_range_asks_again_later() -> None:
    asking = FOLLOWING._replace(phase=Phase.ASKING_START)

    step = leader_start_told(asking, NONE, 20, FOLLOWED, RETRY_MS)

    assert step == Step(FOLLOWING._replace(retry_at_ms=RETRY_MS))


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ],
)
def test_an_error_holds_only_this_partition_back_for_a_while(error: ErrorCode) -> None:
    state = fetched(FOLLOWING, ASKED, Answer(error), FOLLOWED, RETRY_MS).state

    assert state == FOLLOWING._replace(retry_at_ms=RETRY_MS)
    assert (is_due(state, RETRY_MS - 1), is_due(state, RETRY_MS)) == (False, True)


@pytest.mark.parametrize("phase", [Phase.FETCHING, Phase.ASKING_END, Phase.ASKING_START])
def test_a_fenced_follower_waits_for_the_metadata(phase: Phase) -> None:
    fenced = ErrorCode.FENCED_LEADER_EPOCH
    before = FOLLOWING._replace(phase=phase)
    step = {
        Phase.FETCHING: lambda: fetched(before, ASKED, Answer(fenced), FOLLOWED, RETRY_MS),
        Phase.ASKING_END: lambda: leader_end_told(before, fenced, -1, FOLLOWED, RETRY_MS),
        Phase.ASKING_START: lambda: leader_start_told(before, fenced, -1, FOLLOWED, RETRY_MS),
    }[phase]()

    assert step == Step(FOLLOWING._replace(phase=Phase.AWAITING_METADATA))
    assert not is_due(step.state, RETRY_MS * 1000)


# -- two logs that have diverged
# ------------------------------


class Replica:
    """A log of epochs alone: the record at an offset is (epoch, what was written there)."""

    def __init__(self, records: list[tuple[int, int]]) -> None:
        self.records = list(records)
        self.epochs = LeaderEpochs()
        for offset, (epoch, _) in enumerate(self.records):
            self.epochs.assign(epoch, offset)

    @property
    def view(self) -> Log:
        return Log(len(self.records), 0, self.epochs)

    def truncate_to(self, offset: int) -> None:
        del self.records[offset:]
        self.epochs.truncate_from_end(offset)

    def answer(self, offset: int, last_epoch: int, most: int) -> tuple[Answer, list[tuple[int, int]]]:
        """As a leader answers a fetch."""
        if last_epoch >= 0:
            epoch, end = self.epochs.end_offset_for(last_epoch, len(self.records))
            if epoch < 0 or end < 0:
                return Answer(ErrorCode.OFFSET_OUT_OF_RANGE), []
            if epoch < last_epoch or end < offset:
                return Answer(NONE, diverging=EpochEnd(epoch, end)), []
        if offset > len(self.records):
            return Answer(ErrorCode.OFFSET_OUT_OF_RANGE), []
        return Answer(NONE), self.records[offset : offset + most]


def histories(dice: random.Random) -> tuple[list[tuple[int, int]], Replica, Replica]:
    """What is committed, and two logs that have it and went different ways under several leaders each.

    A leader of an epoch writes to its own log, so only one of both has records of it, or both the same.
    """
    committed: list[tuple[int, int]] = []
    epoch = dice.randrange(3)
    for _ in range(dice.randrange(4)):
        committed += [(epoch, dice.randrange(1 << 30)) for _ in range(dice.randrange(4))]
        epoch += dice.randrange(1, 3)
    logs = list(committed), list(committed)
    begun: list[int] = []
    for _ in range(dice.randrange(7)):
        one = dice.randrange(2)
        logs[one].extend((epoch, dice.randrange(1 << 30)) for _ in range(dice.randrange(4)))
        begun.append(one)
        epoch += 1
    return committed, Replica(logs[0]), Replica(logs[1])


@pytest.mark.parametrize("seed", range(400))
def test_logs_that_have_diverged_become_identical_and_keep_what_is_committed(seed: int) -> None:
    dice = random.Random(seed)
    committed, leader, follower = histories(dice)
    leader_epoch = 100
    leader.epochs.assign(leader_epoch, len(leader.records))
    if dice.random() < 0.5:
        leader.records.append((leader_epoch, dice.randrange(1 << 30)))
    following = follow(leader_epoch, follower.view._replace(high_watermark=len(committed))).state

    for _ in range(200):
        if follower.records == leader.records:
            break
        answer, sent = leader.answer(
            following.fetch_offset, following.last_fetched_epoch, dice.randrange(1, 4)
        )
        asked = PartitionFetch(leader_epoch, following.fetch_offset, following.last_fetched_epoch, 0)
        step = fetched(following, asked, answer, follower.view, RETRY_MS)
        following = step.state
        if following.phase is Phase.ASKING_END:
            step = leader_end_told(following, NONE, len(leader.records), follower.view, RETRY_MS)
            following = step.state
        for effect in step.effects:
            assert isinstance(effect, Start)
            if isinstance(effect.work, TruncateTo):
                assert effect.work.offset >= len(committed)
                follower.truncate_to(effect.work.offset)
            else:
                assert isinstance(effect.work, Append)
                for record in sent:
                    follower.epochs.assign(record[0], len(follower.records))
                    follower.records.append(record)
        following = at_log_end(following, follower.view)
        assert follower.records[: len(committed)] == committed

    assert follower.records == leader.records


def test_an_epoch_that_was_led_without_a_record_does_not_hold_a_follower_up() -> None:
    follower = log((3, 0), (5, 60), (8, 100))  # it led epoch 8, and wrote nothing

    assert truncation_offset(EpochEnd(5, 130), follower) == 100  # the log forgets epoch 8 at its end
