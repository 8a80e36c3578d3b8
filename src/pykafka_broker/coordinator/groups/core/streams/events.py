"""What happens to a streams group, and the answers."""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.streams.endpoints import EndpointPartitions
from pykafka_broker.coordinator.groups.core.streams.state import Endpoint, StreamsMember
from pykafka_broker.coordinator.groups.core.streams.status import Status
from pykafka_broker.coordinator.groups.core.streams.tasks import Tasks
from pykafka_broker.coordinator.groups.core.streams.topology.declared import InternalTopic, Topology
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.system.named_tuple import NamedTuple

#: Tasks as a request lists them: subtopologies with their partitions.
TaskList = tuple[tuple[str, tuple[int, ...]], ...]


class StreamsGroupHeartbeat(NamedTuple):
    """A thread of a Kafka Streams application joins its group, stays in it, or leaves it (KIP-1071).

    A field that is None has not changed since the member sent it last. The tasks are those it has at the
    moment.
    """

    token: int
    now_ms: int
    group_id: str
    member_id: str
    member_epoch: int
    client_id: str = ""
    client_host: str = ""
    endpoint_information_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: Topology | None = None
    active_tasks: TaskList | None = None
    standby_tasks: TaskList | None = None
    warmup_tasks: TaskList | None = None
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: tuple[tuple[str, str], ...] | None = None
    #: Offsets and end offsets of tasks; Kafka 4.3 does not take them yet.
    has_task_offsets: bool = False
    has_task_end_offsets: bool = False
    #: The application is to stop: all members are told.
    shutdown_application: bool = False

    @property
    def owned(self) -> Tasks | None:
        """The tasks that the member reports; None unless it reports all roles."""
        if self.active_tasks is None or self.standby_tasks is None or self.warmup_tasks is None:
            return None
        return Tasks(*map(_tasks, (self.active_tasks, self.standby_tasks, self.warmup_tasks)))


class StreamsGroupHeartbeatResult(NamedTuple):
    """The answer. Tasks are None if the member knows them already."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    statuses: tuple[Status, ...] = ()
    tasks: Tasks | None = None
    endpoint_information_epoch: int = 0
    endpoints: tuple[EndpointPartitions, ...] | None = None
    #: Topics to be created in the name of the member.
    internal_topics: tuple[InternalTopic, ...] = ()


class DescribeStreamsGroup(NamedTuple):
    """Describe one streams group."""

    token: int
    group_id: str


class DescribedStreamsMember(NamedTuple):
    """A member, and its target."""

    member: StreamsMember
    target: Tasks


class DescribedStreamsGroup(NamedTuple):
    """The answer to DescribeStreamsGroup."""

    group_id: str
    state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    topology: Topology | None = None
    members: tuple[DescribedStreamsMember, ...] = ()
    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


StreamsEvent = StreamsGroupHeartbeat | DescribeStreamsGroup


def _tasks(listed: TaskList) -> dict[str, frozenset[int]]:
    found: dict[str, frozenset[int]] = {}
    for name, partitions in listed:
        found[name] = found.get(name, frozenset()) | frozenset(partitions)
    return found
