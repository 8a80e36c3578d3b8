"""A replica of a simulated quorum, as its surroundings and the invariants see it.

`core_replica.py` runs `raft/core` with a small shell of its own, which is quick; `shell_replica.py` runs the
shell of a broker, `raft/driver.py` over `raft/storage.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from pykafka_broker.raft.core.log_view import Batch, LogView, Membership, SnapshotId
from pykafka_broker.raft.core.messages import Answer, Request
from pykafka_broker.raft.core.quorum import ReplicaKey, Voter
from pykafka_broker.raft.core.settings import Settings
from pykafka_broker.raft.core.state import ElectionState, Event, RaftState, RaftStep, Send
from tests.simulation.log import Log
from tests.simulation.network import Network
from tests.simulation.world import World


class SnapshotContent(NamedTuple):
    """What a snapshot stands for: a digest of all clients' records below its end."""

    snapshot_id: SnapshotId
    digest: int


class Disk(Protocol):
    """One directory; another `directory_id` is another disk. `log` is what has been written to it."""

    @property
    def directory_id(self) -> bytes: ...

    @property
    def log(self) -> Log: ...

    def last_epoch(self) -> int:
        """The epoch of the last record."""
        ...

    def view(self) -> LogView:
        """The facts of the log by its records."""
        ...

    def holds(self, offset: int, epoch: int) -> bool:
        """Whether the record before `offset` is on stable storage, and is of this epoch."""
        ...

    def durable_election(self) -> ElectionState:
        """The quorum-state on stable storage."""
        ...


class Replica(Protocol):
    """A process on a disk; it is down while `state` is None. A restart is another `life`."""

    port: int
    paused_until_ms: int

    @property
    def node_id(self) -> int: ...

    @property
    def life(self) -> int: ...

    @property
    def disk(self) -> Disk: ...

    @property
    def surroundings(self) -> Surroundings:
        """The quorum."""
        ...

    @property
    def state(self) -> RaftState | None:
        """What it is now."""
        ...

    @property
    def local(self) -> Voter:
        """This replica as a voter."""
        ...

    @property
    def is_leader(self) -> bool:
        """Whether it thinks it leads."""
        ...

    def start(self) -> None:
        """Boot from the disk, unless it is up."""
        ...

    def crash(self, *, lose: bool = True) -> None:
        """Stop at once; with `lose`, not all that is not synced survives."""
        ...

    def stop(self) -> None:
        """Stop cleanly: hand over, for as long as a node has, and tell the quorum when it has ended."""
        ...

    def end(self) -> None:
        """End the process: the simulation is over."""
        ...

    def lose_disk(self, directory_id: bytes) -> None:
        """Have another disk, with nothing on it."""
        ...

    def append(self, count: int) -> None:
        """As leader, append a batch of a client."""
        ...

    def take_snapshot(self) -> None:
        """Write a snapshot of all that is committed, and perhaps delete the log before an older one."""
        ...

    def ask(self, request: Request, reply: Callable[[Answer], None]) -> None:
        """Take a request of another replica, or of an administrator."""
        ...

    def upgrade(self) -> None:
        """Take an administrator's request to raise kraft.version."""
        ...


class Watcher(Protocol):
    """Is told of all that a replica does; raises a Violation."""

    digests: list[int]

    def started(self, replica: Replica) -> None: ...
    def persisted(self, replica: Replica, election: ElectionState) -> None: ...
    def appends(self, replica: Replica, batch: Batch) -> None: ...
    def truncates(self, replica: Replica, end_offset: int) -> None: ...
    def installs(self, replica: Replica, snapshot_id: SnapshotId, content: SnapshotContent) -> None: ...
    def advanced(self, replica: Replica, offset: int) -> None: ...
    def asks(self, replica: Replica, request: Request) -> None: ...
    def replied(self, replica: Replica, request: Request, answer: Answer) -> None: ...
    def heard(self, replica: Replica, before: RaftState, event: Event) -> None: ...


class Surroundings(Protocol):
    """The quorum, as its replicas see it."""

    world: World
    network: Network

    @property
    def watcher(self) -> Watcher: ...
    def next_value(self) -> int: ...
    def disk_of(self, key: ReplicaKey) -> Disk: ...
    def carry(self, sender: Replica, send: Send, answered: Callable[[Answer | None], None]) -> None: ...
    def stepped(self, replica: Replica, before: RaftState, step: RaftStep) -> None: ...
    def ended(self, replica: Replica) -> None: ...


Make = Callable[[int, bytes, Membership, Settings], Replica]


class Kind(NamedTuple):
    """A kind of replicas.

    `begin` gets a quorum, and returns what makes its replicas: of a node id, the id of its disk, and the
    first voters that the disk names. More than `max_events` events are a replica that spins.
    """

    name: str
    begin: Callable[[Surroundings], Make]
    max_events: int
