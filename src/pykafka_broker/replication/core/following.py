"""The transitions of a partition that another broker leads, after each answer of the leader.

    follow(...) -> Step                  from the metadata, in each leader epoch
    fetched(...) -> Step                 the leader has answered a fetch
    leader_end_told / leader_start_told  the leader has answered a ListOffsets request
    at_log_end(...) -> Following         the shell has appended or truncated
    held_back(...) / stopped(...)        the shell could not

The shell carries out the effects: `Append`, `TruncateTo` and `StartAt` on the log, `AskLeaderEnd` and
`AskLeaderStart` at the leader. After each change of the log the shell calls `at_log_end`.

The logs are reconciled by leader epochs (KIP-101, KIP-279, KIP-595): the follower sends the epoch of its last
record, and the leader answers with the end of the largest epoch that both may share. A log without any epoch
is truncated to its high watermark. A log beyond the leader's end is truncated to that end if the leader knows
no epoch. As in Apache Kafka a truncation below the high watermark is carried out, and logged: the leader was
elected uncleanly.

Left out on purpose: leaders that do not know topics by their ids (Fetch below v13), and tiered storage.
"""

from __future__ import annotations

from enum import Enum
from typing import Optional, Protocol, Union

from pykafka_broker.log.partition.leader_epochs import UNDEFINED_EPOCH, LeaderEpochs
from pykafka_broker.machine.step import Start, Step
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.replication.core.fetch_session import PartitionFetch
from pykafka_broker.system.named_tuple import NamedTuple


class Phase(Enum):
    """In `FETCHING` the partition is fetched; in the other phases it waits."""

    FETCHING = "fetching"
    #: The leader is asked for the end, or the start, of its log.
    ASKING_END = "asking for the leader's end"
    ASKING_START = "asking for the leader's start"
    #: The leader has a newer leader epoch: wait for the metadata.
    AWAITING_METADATA = "awaiting metadata"
    #: The log is out of service, or an unexpected error occurred; ends in the next leader epoch.
    STOPPED = "stopped"


class FollowerLog(Protocol):
    """The follower's own log at the time of an event."""

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
    #: The leader is not asked before this time; None: no limit.
    retry_at_ms: Optional[int] = None


class EpochEnd(NamedTuple):
    """Where an epoch ends in the leader's log."""

    epoch: int
    end_offset: int


class Answer(NamedTuple):
    """The parts of a leader's answer that decide on its records."""

    error: ErrorCode
    diverging: Optional[EpochEnd] = None


class Append(NamedTuple):
    """Append the records of the answer, if any, and take over the leader's offsets."""


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
#: This broker's metadata is behind: the leader is asked again only after newer metadata.
FENCED = frozenset({ErrorCode.FENCED_LEADER_EPOCH})


def follow(leader_epoch: int, log: FollowerLog, damaged_from: int | None = None) -> Step[Following]:
    """Begin to follow in a leader epoch; a log without epochs is truncated to its high watermark.

    `damaged_from` is the first damaged offset of a replica that is not in sync, which fetches everything from
    there on from its leader. A replica in sync may be the next leader, and keeps its records.
    """
    following = at_log_end(Following(leader_epoch, 0, UNDEFINED_EPOCH), log)
    if damaged_from is not None:
        return Step(following, effects=(Start(TruncateTo(damaged_from)),))
    if following.last_fetched_epoch == UNDEFINED_EPOCH and log.log_end_offset > log.high_watermark:
        return Step(following, effects=(Start(TruncateTo(log.high_watermark)),))
    return Step(following)


def at_log_end(following: Following, log: FollowerLog) -> Following:
    """The log was appended to or truncated: continue at its end."""
    return Following(following.leader_epoch, log.log_end_offset, log.epochs.latest)


def held_back(following: Following, until_ms: int) -> Following:
    """Do not ask the leader before `until_ms`."""
    return following._replace(retry_at_ms=until_ms)


def stopped(following: Following) -> Following:
    """Do not ask the leader until the partition is followed in another epoch."""
    return following._replace(phase=Phase.STOPPED, retry_at_ms=None)


def is_due(following: Following, now_ms: int) -> bool:
    """Whether the leader may be asked now, for records or for its offsets."""
    if following.phase in (Phase.AWAITING_METADATA, Phase.STOPPED):
        return False
    return following.retry_at_ms is None or following.retry_at_ms <= now_ms


def fetched(
    following: Following, asked: PartitionFetch, answer: Answer, log: FollowerLog, retry_at_ms: int
) -> Step[Following]:
    """The leader has answered a fetch. An answer for another epoch or another offset is ignored."""
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
    """The offset to truncate to; `diverging` is the largest epoch that both logs may share.

    If the follower does not know that epoch, it truncates to the end of its next smaller epoch, and the next
    fetch tells more.
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
    """The leader's log ends at `offset`: truncate there if the own log is longer, else ask for its start."""
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
    """The leader's log starts at `offset`: start anew there if the own log ends before it."""
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
