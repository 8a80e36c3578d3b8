"""The transitions of a partition that another broker leads: what an answer of the leader makes of it.

    follow(...) -> Step                  from the metadata, in each leader epoch
    fetched(...) -> Step                 the leader has answered a fetch
    leader_end_told / leader_start_told  the leader has answered a question for its offsets
    at_log_end(...) -> Following         the shell has appended or truncated
    held_back(...) / stopped(...)        the shell could not

The effects are carried out on the log by the shell: `Append`, `TruncateTo`, `StartAt`, or asking the leader
(`AskLeaderEnd`, `AskLeaderStart`). After each that changes the log the shell says so with `at_log_end`.

The logs are reconciled by leader epochs (KIP-101, KIP-279, KIP-595): the follower sends the epoch of its last
record, and the leader answers with the end of the largest epoch that both may share. Only a follower without
any epoch is cut at its high watermark, and one beyond the leader's end, of which the leader knows no epoch,
at that end. As in Apache Kafka a truncation below the high watermark is carried out, and logged: the leader
was elected uncleanly.

Left out on purpose: leaders that do not know topics by their ids (Fetch below v13), and tiered storage.
"""

from __future__ import annotations

from enum import Enum
from typing import Optional, Protocol, Union

from pykafka_broker.log.partition.leader_epochs import UNDEFINED_EPOCH, LeaderEpochs
from pykafka_broker.machine.step import Start, Step
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.system.named_tuple import NamedTuple


class Phase(Enum):
    """`FETCHING` may be asked for; the others wait for something."""

    FETCHING = "fetching"
    #: The leader is asked where its log ends, or starts.
    ASKING_END = "asking for the leader's end"
    ASKING_START = "asking for the leader's start"
    #: The leader is in a later epoch: there is newer metadata on its way.
    AWAITING_METADATA = "awaiting metadata"
    #: The log is out of service, or a defect shows: until the partition is followed anew.
    STOPPED = "stopped"


class FollowerLog(Protocol):
    """The follower's own log, as it is when an event comes."""

    @property
    def log_end_offset(self) -> int: ...

    @property
    def high_watermark(self) -> int: ...

    @property
    def epochs(self) -> LeaderEpochs: ...


class Following(NamedTuple):
    """One partition, followed in one leader epoch."""

    leader_epoch: int
    fetch_offset: int
    #: -1 while the log knows no epoch.
    last_fetched_epoch: int
    phase: Phase = Phase.FETCHING
    #: Nothing is asked for before this moment; None if nothing holds the partition back.
    retry_at_ms: Optional[int] = None


class Asked(Protocol):
    """What a request said about the partition."""

    @property
    def leader_epoch(self) -> int: ...

    @property
    def fetch_offset(self) -> int: ...


class EpochEnd(NamedTuple):
    """Where an epoch ends in the leader's log."""

    epoch: int
    end_offset: int


class Answer(NamedTuple):
    """The answer of a leader about the partition, as far as it decides what is done with its records."""

    error: ErrorCode
    diverging: Optional[EpochEnd] = None


class Append(NamedTuple):
    """Append the records of the answer if there are any, and go by the leader's offsets."""


class TruncateTo(NamedTuple):
    """Remove everything from `offset` on."""

    offset: int


class StartAt(NamedTuple):
    """Remove everything, and start at `offset`."""

    offset: int


class AskLeaderEnd(NamedTuple):
    """Ask the leader for its log end offset, naming the leader epoch."""


class AskLeaderStart(NamedTuple):
    """Ask the leader for its log start offset, naming the leader epoch."""


Work = Union[Append, TruncateTo, StartAt, AskLeaderEnd, AskLeaderStart]

#: The effects of most answers.
APPENDS = (Start(Append()),)
#: This broker's metadata is behind: it is of no use to ask again before it has come.
FENCED = frozenset({ErrorCode.FENCED_LEADER_EPOCH})


def follow(leader_epoch: int, log: FollowerLog, damaged_from: int | None = None) -> Step[Following]:
    """Begin to follow in a leader epoch; a log without epochs may hold nothing that is not committed.

    `damaged_from` is the first offset that is damaged, of a replica that is not in sync: it gets everything
    from there on from its leader. One that is in sync may be the next leader, and keeps what it has.
    """
    following = at_log_end(Following(leader_epoch, 0, UNDEFINED_EPOCH), log)
    if damaged_from is not None:
        return Step(following, effects=(Start(TruncateTo(damaged_from)),))
    if following.last_fetched_epoch == UNDEFINED_EPOCH and log.log_end_offset > log.high_watermark:
        return Step(following, effects=(Start(TruncateTo(log.high_watermark)),))
    return Step(following)


def at_log_end(following: Following, log: FollowerLog) -> Following:
    """The log was appended to or truncated: go on where it ends now."""
    return Following(following.leader_epoch, log.log_end_offset, log.epochs.latest)


def held_back(following: Following, until_ms: int) -> Following:
    """Ask for nothing before `until_ms`."""
    return following._replace(retry_at_ms=until_ms)


def stopped(following: Following) -> Following:
    """Ask for nothing until the partition is followed anew."""
    return following._replace(phase=Phase.STOPPED, retry_at_ms=None)


def is_due(following: Following, now_ms: int) -> bool:
    """Whether the leader may be asked now, for records or for its offsets."""
    if following.phase in (Phase.AWAITING_METADATA, Phase.STOPPED):
        return False
    return following.retry_at_ms is None or following.retry_at_ms <= now_ms


def fetched(
    following: Following, asked: Asked, answer: Answer, log: FollowerLog, retry_at_ms: int
) -> Step[Following]:
    """The leader has answered a fetch. One about another epoch, or another offset, says nothing any more."""
    if (
        asked.fetch_offset != following.fetch_offset
        or asked.leader_epoch != following.leader_epoch
        or following.phase is not Phase.FETCHING
    ):
        return Step(following)
    if answer.error is ErrorCode.OFFSET_OUT_OF_RANGE:
        asking = following._replace(phase=Phase.ASKING_END)
        return Step(asking, effects=(Start(AskLeaderEnd()),))
    if answer.error is not ErrorCode.NONE:
        return Step(_refused(following, answer.error, retry_at_ms))
    if answer.diverging is not None:
        return Step(following, effects=(Start(TruncateTo(truncation_offset(answer.diverging, log))),))
    return Step(following, effects=APPENDS)


def truncation_offset(diverging: EpochEnd, log: FollowerLog) -> int:
    """Where to cut the log, of which the leader knows `diverging.epoch` as the last one in common.

    If the follower does not know that epoch, it is cut where its next smaller one ends; the next fetch tells
    more.
    """
    if diverging.end_offset < 0:
        return log.high_watermark
    if diverging.epoch == UNDEFINED_EPOCH:
        return min(diverging.end_offset, log.log_end_offset)
    own = log.epochs.end_offset_for(diverging.epoch, log.log_end_offset)
    if own.start_offset < 0:
        return min(diverging.end_offset, log.log_end_offset)
    if own.epoch != diverging.epoch:
        return min(own.start_offset, log.log_end_offset)
    return min(own.start_offset, diverging.end_offset, log.log_end_offset)


def leader_end_told(
    following: Following, error: ErrorCode, offset: int, log: FollowerLog, retry_at_ms: int
) -> Step[Following]:
    """The leader's log ends at `offset`: if that is before the own end, cut there; else its start counts."""
    if following.phase is not Phase.ASKING_END:
        return Step(following)
    if error is not ErrorCode.NONE:
        return Step(_refused(following._replace(phase=Phase.FETCHING), error, retry_at_ms))
    if offset < log.log_end_offset:
        return Step(following, effects=(Start(TruncateTo(offset)),))
    asking = following._replace(phase=Phase.ASKING_START)
    return Step(asking, effects=(Start(AskLeaderStart()),))


def leader_start_told(
    following: Following, error: ErrorCode, offset: int, log: FollowerLog, retry_at_ms: int
) -> Step[Following]:
    """The leader's log starts at `offset`: beyond the own end, nothing here is of use any more."""
    if following.phase is not Phase.ASKING_START:
        return Step(following)
    if error is not ErrorCode.NONE:
        return Step(_refused(following._replace(phase=Phase.FETCHING), error, retry_at_ms))
    if offset > log.log_end_offset:
        return Step(following, effects=(Start(StartAt(offset)),))
    return Step(at_log_end(following, log)._replace(retry_at_ms=retry_at_ms))


def _refused(following: Following, error: ErrorCode, retry_at_ms: int) -> Following:
    if error in FENCED:
        return following._replace(phase=Phase.AWAITING_METADATA, retry_at_ms=None)
    return held_back(following, retry_at_ms)
