"""One replica, its events and its steps."""

from __future__ import annotations

from typing import Union

from pykafka_broker.raft.core.connections import Connections
from pykafka_broker.raft.core.log_view import Batch, LogView, SnapshotFile, SnapshotId
from pykafka_broker.raft.core.messages import Answer, Destination, Request
from pykafka_broker.raft.core.quorum import UNKNOWN_DIRECTORY, Voter
from pykafka_broker.raft.core.roles import Role
from pykafka_broker.raft.core.settings import DEFAULTS, Settings
from pykafka_broker.system.named_tuple import NamedTuple


class ElectionState(NamedTuple):
    """The `quorum-state` file: without it a replica could vote twice, or lead an epoch twice."""

    leader_epoch: int = 0
    leader_id: int = -1
    voted_id: int = -1
    voted_directory_id: bytes = UNKNOWN_DIRECTORY


class RaftState(NamedTuple):
    """One replica.

    `election` is the content of its quorum-state. All records below `high_watermark` are known to be
    committed; None: unknown yet. `stopping`: it no longer leads, and starts no election.
    """

    local: Voter
    role: Role
    log: LogView
    settings: Settings = DEFAULTS
    election: ElectionState = ElectionState()
    high_watermark: int | None = None
    connections: Connections = Connections()
    stopping: bool = False


class Moment(NamedTuple):
    """The time of an event on a monotonic clock, and a random number in [0, 1)."""

    now_ms: int
    chance: float


class Send(NamedTuple):
    """A request to another replica; its answer comes back as `Answered`, or `Unanswered`."""

    to: Destination
    request_id: int
    request: Request


class Reply(NamedTuple):
    """The answer to the request that came with this token."""

    token: int
    answer: Answer


class Chunk(NamedTuple):
    """A part of a snapshot that is being received; a part at position 0 starts a new file."""

    snapshot_id: SnapshotId
    position: int
    data: bytes
    is_last: bool


class RaftStep(NamedTuple):
    """The next state, and the actions of the driver in this order; a replica must stop if one of them fails.

    persist    write the election state, synced, before anything below
    truncate   cut the log to this end
    append     append one control batch, in the epoch of the state's role
    replicate  append the batches of a leader as they are
    receive    write a part of a snapshot; after the last one sync the file, restart the log at its end, and
               hand in `SnapshotInstalled`, or `SnapshotRefused`, before any other event
    send       requests to other replicas
    reply      answers; what they promise is on disk
    advance    everything below this offset is committed: apply it, then answer the requests that wait for it

    `state.log` is the log after truncate, append and replicate. Leaders and replicas that may vote sync
    appended records soon, and then hand in `Flushed`.
    """

    state: RaftState
    persist: ElectionState | None = None
    truncate: int | None = None
    append: tuple[object, ...] = ()
    replicate: tuple[Batch, ...] = ()
    receive: Chunk | None = None
    send: tuple[Send, ...] = ()
    reply: tuple[Reply, ...] = ()
    advance: int | None = None


# -- events ----------------------------------------------------------------------------------------------


class Appended(NamedTuple):
    """The leader's log now ends at `end_offset`, in memory or on disk."""

    end_offset: int


class Flushed(NamedTuple):
    """Everything below `end_offset` of the own log is on disk."""

    end_offset: int


class SnapshotsChanged(NamedTuple):
    """A snapshot was finished, or old ones were deleted and the log trimmed; the values are the new ones."""

    start_offset: int
    snapshots: tuple[SnapshotFile, ...]


class SnapshotInstalled(NamedTuple):
    """The received snapshot has replaced the log; `log` is the new one."""

    log: LogView


class SnapshotRefused(NamedTuple):
    """The file of the received snapshot is damaged; the log is unchanged."""


class TimePassed(NamedTuple):
    """A deadline has been reached (`next_deadline_ms`)."""


class Received(NamedTuple):
    """A request of another replica, or of an administrator; `token` comes back with the answer."""

    token: int
    request: Request


class Answered(NamedTuple):
    """The answer to a request of this replica."""

    node_id: int
    request_id: int
    answer: Answer


class Unanswered(NamedTuple):
    """A request of this replica failed: the connection broke, or nothing came in time."""

    node_id: int
    request_id: int


class UpgradeKRaftVersion(NamedTuple):
    """Raise kraft.version to 1, or only check that; answered with `ChangeAnswer` after the commit."""

    token: int
    validate_only: bool = False


class Resign(NamedTuple):
    """Let another voter lead: this one's log cannot be written."""


class Stop(NamedTuple):
    """The node stops: hand over, and start no election."""


Event = Union[
    Appended,
    Flushed,
    SnapshotsChanged,
    SnapshotInstalled,
    SnapshotRefused,
    TimePassed,
    Received,
    Answered,
    Unanswered,
    UpgradeKRaftVersion,
    Resign,
    Stop,
]
