"""The requests and answers of replicas: typed values, one pair for each RPC.

Every answer has an error code and `Current`, the epoch and leader known to the replica that answers. From it
a requester learns of elections that it has missed.
"""

from __future__ import annotations

from typing import Union

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core.log_view import Batch, EpochEnd, SnapshotId
from pykafka_broker.raft.core.quorum import Address, Endpoints, ReplicaKey, Voter
from pykafka_broker.system.named_tuple import NamedTuple

#: The high watermark in a Fetch before version 18: a change of it does not make the answer early.
NOT_WATCHED = (1 << 63) - 1


class Destination(NamedTuple):
    """A replica and its address. The ids of bootstrap servers are unknown: they are -2, -3, ..."""

    node_id: int
    address: Address


class Current(NamedTuple):
    """The epoch of the replica that answers, and the leader that it knows."""

    epoch: int
    leader_id: int | None = None
    endpoints: Endpoints = {}


# -- Vote, with pre-votes (KIP-996) -----------------------------------------------------------------------


class Vote(NamedTuple):
    """A replica asks for a vote in `epoch`. `voter` is the copy that it asks; None in version 0."""

    epoch: int
    candidate: ReplicaKey
    voter: ReplicaKey | None
    last_epoch: int
    end_offset: int
    pre_vote: bool = False


class VoteAnswer(NamedTuple):
    """Whether the vote is given."""

    error: ErrorCode
    current: Current
    granted: bool = False


# -- BeginQuorumEpoch and EndQuorumEpoch -------------------------------------------------------------------


class BeginQuorumEpoch(NamedTuple):
    """The leader of an epoch announces itself."""

    epoch: int
    leader_id: int
    endpoints: Endpoints
    voter: ReplicaKey | None


class EndQuorumEpoch(NamedTuple):
    """The leader of an epoch has resigned; the first of `successors` should be the next."""

    epoch: int
    leader_id: int
    endpoints: Endpoints
    successors: tuple[ReplicaKey, ...]


class Acknowledged(NamedTuple):
    """The answer to BeginQuorumEpoch, EndQuorumEpoch and UpdateRaftVoter."""

    error: ErrorCode
    current: Current


# -- Fetch -----------------------------------------------------------------------------------------------


class Fetch(NamedTuple):
    """A replica asks for the records from `offset` on; it has the records below `offset` on disk.

    `last_epoch` is that of its last record. `replica.node_id` is -1 for a reader that replicates nothing.
    """

    epoch: int
    replica: ReplicaKey
    offset: int
    last_epoch: int
    max_wait_ms: int
    high_watermark: int = NOT_WATCHED


class FetchAnswer(NamedTuple):
    """The leader's answer. At most one of `diverging`, `snapshot_id`, `read_from` and `batches` is set.

    diverging    epoch and end offset up to which both logs may agree; the follower's log diverges there
    snapshot_id  the follower needs this snapshot first
    read_from    the leader's shell adds the records from this offset on
    batches      the batches that the follower's shell found in the answer
    """

    error: ErrorCode
    current: Current
    high_watermark: int | None = None
    start_offset: int = -1
    diverging: EpochEnd | None = None
    snapshot_id: SnapshotId | None = None
    read_from: int | None = None
    batches: tuple[Batch, ...] = ()


# -- FetchSnapshot ---------------------------------------------------------------------------------------


class FetchSnapshot(NamedTuple):
    """A follower asks for a part of a snapshot."""

    epoch: int
    replica: ReplicaKey
    snapshot_id: SnapshotId
    position: int
    max_bytes: int


class FetchSnapshotAnswer(NamedTuple):
    """Up to `max_bytes` of the file from `position` on: the leader's shell reads them as `data`."""

    error: ErrorCode
    current: Current
    snapshot_id: SnapshotId | None = None
    size_bytes: int = 0
    position: int = 0
    max_bytes: int = 0
    data: bytes = b""


# -- changes of the voters (KIP-853) -----------------------------------------------------------------------


class AddVoter(NamedTuple):
    """Make a copy of the log a voter; the leader asks it for its kraft.version levels first."""

    key: ReplicaKey
    endpoints: Endpoints
    timeout_ms: int
    ack_when_committed: bool = True


class RemoveVoter(NamedTuple):
    """Take a voter out of the quorum."""

    key: ReplicaKey


class UpdateVoter(NamedTuple):
    """A voter sends its new entry."""

    epoch: int
    voter: Voter


class ChangeAnswer(NamedTuple):
    """The answer to AddRaftVoter and RemoveRaftVoter.

    `message` is None without an error, and empty if Apache Kafka sends only the code.
    """

    error: ErrorCode
    message: str | None = None
    current: Current | None = None


class AskVersions(NamedTuple):
    """The leader asks a new voter for its supported levels of kraft.version (ApiVersions)."""


class Versions(NamedTuple):
    """The supported levels of kraft.version; None if the replica does not know the feature."""

    error: ErrorCode
    kraft_versions: tuple[int, int] | None = None


class Refused(NamedTuple):
    """Instead of an answer: the connection was refused, because the replica's process has ended."""


Request = Union[
    Vote,
    BeginQuorumEpoch,
    EndQuorumEpoch,
    Fetch,
    FetchSnapshot,
    AddVoter,
    RemoveVoter,
    UpdateVoter,
    AskVersions,
]
Answer = Union[VoteAnswer, Acknowledged, FetchAnswer, FetchSnapshotAnswer, ChangeAnswer, Versions, Refused]
