"""A group coordinator core with streams groups among its groups."""

from __future__ import annotations

from typing import Any

from pykafka_broker.coordinator.groups.core.streams.events import (
    StreamsGroupHeartbeat,
    StreamsGroupHeartbeatResult,
    TaskList,
)
from pykafka_broker.coordinator.groups.core.streams.state import StreamsGroup
from pykafka_broker.coordinator.groups.core.streams.topology.declared import Subtopology, Topology
from tests.support.groups import GroupWorld

#: One subtopology that reads one topic.
READING = Topology(0, (Subtopology("0", ("t",)),))
NOTHING: dict[str, TaskList] = {"active_tasks": (), "standby_tasks": (), "warmup_tasks": ()}


class StreamsShard(GroupWorld):
    """The groups of one shard, some of them streams groups."""

    def stream(
        self, member_id: str, member_epoch: int, *, group_id: str = "g", **said: Any
    ) -> StreamsGroupHeartbeatResult:
        """A heartbeat of a member of a streams group."""
        token = self.token()
        self.submit(
            StreamsGroupHeartbeat(
                token, self.now_ms, group_id, member_id, member_epoch, "client", "/127.0.0.1", **said
            )
        )
        result = self.answers[token]
        assert isinstance(result, StreamsGroupHeartbeatResult)
        return result

    def join_streams(
        self, member_id: str, topology: Topology = READING, *, group_id: str = "g", **said: Any
    ) -> StreamsGroupHeartbeatResult:
        """The first heartbeat of a member, in a process of its own."""
        given = {"rebalance_timeout_ms": 60_000, "process_id": f"p-{member_id}", **NOTHING, **said}
        return self.stream(member_id, 0, group_id=group_id, topology=topology, **given)

    def beat(self, member_id: str, *, group_id: str = "g", **said: Any) -> StreamsGroupHeartbeatResult:
        """A heartbeat of a member in its epoch."""
        return self.stream(member_id, self.epoch_of(member_id, group_id), group_id=group_id, **said)

    def beat_owning(self, member_id: str, *, group_id: str = "g") -> StreamsGroupHeartbeatResult:
        """A heartbeat of a member that has what it was told to have, and nothing else."""
        assigned = self.streams_group(group_id).members[member_id].assigned
        said = [tuple((name, tuple(sorted(role[name]))) for name in sorted(role)) for role in assigned]
        return self.beat(member_id, group_id=group_id, **dict(zip(NOTHING, said, strict=True)))

    def epoch_of(self, member_id: str, group_id: str = "g") -> int:
        """The epoch of a member."""
        return self.streams_group(group_id).members[member_id].member_epoch

    def streams_group(self, group_id: str = "g") -> StreamsGroup:
        group = self.state.streams(group_id)
        assert group is not None
        return group
