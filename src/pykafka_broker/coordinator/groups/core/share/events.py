"""The requests to share groups, their answers, and their work for the share coordinator.

A `Start` effect carries work: the shell then asks the share coordinator. The outcome comes back as an event
with the work in it, so that nothing has to be remembered meanwhile.
"""

from __future__ import annotations

import enum

from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.system.named_tuple import NamedTuple

#: (partition, error, message) for partitions of a topic.
ErrorsByPartition = tuple[tuple[int, ErrorCode, str | None], ...]

# ---- ShareGroupHeartbeat and ShareGroupDescribe ----


class ShareGroupHeartbeat(NamedTuple):
    """A consumer joins a share group, stays in it, or leaves it.

    A field that is None has not changed since the member sent it last.
    """

    token: int
    now_ms: int
    group_id: str
    member_id: str
    member_epoch: int
    client_id: str
    client_host: str
    rack_id: str | None = None
    subscribed_topic_names: tuple[str, ...] | None = None


class ShareGroupHeartbeatResult(NamedTuple):
    """The answer to ShareGroupHeartbeat; no assignment means that it is as before."""

    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    #: (topic id, partitions).
    assignment: tuple[tuple[bytes, tuple[int, ...]], ...] | None = None


class DescribeShareGroup(NamedTuple):
    """Describe one share group."""

    token: int
    group_id: str


class DescribedShareMember(NamedTuple):
    """A member as ShareGroupDescribe shows it; partitions as (topic id, name, partitions)."""

    member_id: str
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    assignment: tuple[tuple[bytes, str, tuple[int, ...]], ...]


class DescribedShareGroup(NamedTuple):
    """The answer to DescribeShareGroup."""

    error: ErrorCode
    group_id: str
    error_message: str | None = None
    state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor: str = ""
    members: tuple[DescribedShareMember, ...] = ()


# ---- offsets ----


class DescribeShareOffsets(NamedTuple):
    """Describe the start offsets of a share group; `topics` None: of all partitions that have a state."""

    token: int
    group_id: str
    #: (topic, partitions).
    topics: tuple[tuple[str, tuple[int, ...]], ...] | None


class ShareOffset(NamedTuple):
    """The start offset of a share group in one partition; -1 if it is not decided yet."""

    partition: int
    start_offset: int = -1
    leader_epoch: int = 0
    #: The records that are still to be delivered; -1: not known.
    lag: int = -1
    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class DescribedShareOffsets(NamedTuple):
    """The answer to DescribeShareOffsets: (topic, topic id, offsets)."""

    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    topics: tuple[tuple[str, bytes, tuple[ShareOffset, ...]], ...] = ()


class AlterShareOffsets(NamedTuple):
    """Set the start offsets of a share group without members."""

    token: int
    now_ms: int
    group_id: str
    #: (topic, ((partition, start offset), ...)).
    topics: tuple[tuple[str, tuple[tuple[int, int], ...]], ...]


class AlteredShareOffsets(NamedTuple):
    """The answer to AlterShareOffsets: (topic, topic id, errors of its partitions)."""

    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    topics: tuple[tuple[str, bytes, ErrorsByPartition], ...] = ()


class DeleteShareOffsets(NamedTuple):
    """Forget the start offsets of a share group without members, by topic."""

    token: int
    now_ms: int
    group_id: str
    topics: tuple[str, ...]


class DeletedShareTopic(NamedTuple):
    """The outcome of one topic of DeleteShareOffsets; a topic that was just deleted has no name."""

    topic: str | None
    topic_id: bytes = ZERO_UUID
    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class DeletedShareOffsets(NamedTuple):
    """The answer to DeleteShareOffsets."""

    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    topics: tuple[DeletedShareTopic, ...] = ()


# ---- work with the share coordinator, and its outcome ----


class InitializeShareState(NamedTuple):
    """Have the share coordinator make states of partitions (InitializeShareGroupState)."""

    group_id: str
    #: The group's epoch, as the epoch of the states.
    state_epoch: int
    #: (topic id, ((partition, start offset), ...)); -1 leaves the offset to the first leader that needs it.
    topics: tuple[tuple[bytes, tuple[tuple[int, int], ...]], ...]
    #: The AlterShareOffsets that it is for, and its answer if all goes well.
    token: int | None = None
    answer: AlteredShareOffsets | None = None


class ShareStateInitialized(NamedTuple):
    """The outcome of `InitializeShareState`, one for each of its partitions.

    What could not be sent, or was not answered, is reported as an error of all its partitions.
    """

    now_ms: int
    work: InitializeShareState
    topics: tuple[tuple[bytes, ErrorsByPartition], ...]

    @property
    def group_id(self) -> str:
        """The group whose partitions they are."""
        return self.work.group_id


class DeletionPurpose(enum.Enum):
    """What states are deleted for."""

    #: DeleteGroups.
    GROUP = "group"
    #: DeleteShareGroupOffsets.
    OFFSETS = "offsets"


class DeleteShareState(NamedTuple):
    """Have the share coordinator delete states of partitions (DeleteShareGroupState)."""

    token: int
    group_id: str
    purpose: DeletionPurpose
    #: (topic id, partitions).
    topics: tuple[tuple[bytes, tuple[int, ...]], ...]
    #: The topics of DeleteShareOffsets that are answered already.
    refused: tuple[DeletedShareTopic, ...] = ()


class ShareStateDeleted(NamedTuple):
    """The outcome of `DeleteShareState`, as for `ShareStateInitialized`."""

    now_ms: int
    work: DeleteShareState
    topics: tuple[tuple[bytes, ErrorsByPartition], ...]

    @property
    def group_id(self) -> str:
        """The group whose partitions they are."""
        return self.work.group_id


class ReadShareSummary(NamedTuple):
    """Ask the share coordinator where partitions begin (ReadShareGroupStateSummary)."""

    token: int
    group_id: str
    #: (topic, topic id, partitions).
    topics: tuple[tuple[str, bytes, tuple[int, ...]], ...]
    #: Topics that do not exist, answered already.
    missing: tuple[tuple[str, bytes, tuple[ShareOffset, ...]], ...] = ()
    #: All partitions of the request, as in `topics`, also missing ones; no share coordinator is
    #: asked about the missing ones.
    named: tuple[tuple[str, bytes, tuple[int, ...]], ...] = ()


class ShareSummary(NamedTuple):
    """The share coordinator's summary of one partition."""

    partition: int
    error: ErrorCode = ErrorCode.NONE
    start_offset: int = -1
    leader_epoch: int = 0
    #: The records after the start offset whose delivery is complete; -1: not known.
    delivery_complete_count: int = -1


class ShareSummaryRead(NamedTuple):
    """The outcome of `ReadShareSummary`; errors are per partition."""

    work: ReadShareSummary
    #: (topic id, summaries).
    topics: tuple[tuple[bytes, tuple[ShareSummary, ...]], ...]

    @property
    def group_id(self) -> str:
        """The group whose partitions they are."""
        return self.work.group_id


class ListEndOffsets(NamedTuple):
    """Ask leaders for the high watermarks of partitions, for the lag (ListOffsets, latest offset)."""

    read: ShareSummaryRead
    #: (topic, partition).
    partitions: tuple[tuple[str, int], ...]


class EndOffsetsListed(NamedTuple):
    """The outcome of `ListEndOffsets`, for each of its partitions: (topic, partition, error, end offset)."""

    work: ListEndOffsets
    partitions: tuple[tuple[str, int, ErrorCode, int], ...]

    @property
    def group_id(self) -> str:
        """The group whose partitions they are."""
        return self.work.read.group_id


class ShareOutcomeRefused(NamedTuple):
    """The log has refused the records of an outcome; the waiting caller is answered."""

    outcome: ShareStateInitialized | ShareStateDeleted
    error: KafkaError

    @property
    def group_id(self) -> str:
        """The group that it is about."""
        return self.outcome.group_id


ShareRequest = (
    ShareGroupHeartbeat | DescribeShareGroup | DescribeShareOffsets | AlterShareOffsets | DeleteShareOffsets
)
ShareWork = InitializeShareState | DeleteShareState | ReadShareSummary | ListEndOffsets
ShareOutcome = ShareStateInitialized | ShareStateDeleted | ShareSummaryRead | EndOffsetsListed
ShareEvent = ShareRequest | ShareOutcome | ShareOutcomeRefused
