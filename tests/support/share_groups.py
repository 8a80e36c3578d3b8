"""A group coordinator core with share groups; in place of a share coordinator, the work it was asked for."""

from __future__ import annotations

from typing import Any

from pykafka_broker.coordinator.groups.core.share.events import (
    InitializeShareState,
    ShareGroupHeartbeat,
    ShareGroupHeartbeatResult,
    ShareStateInitialized,
)
from pykafka_broker.coordinator.groups.core.share.state import ShareGroup
from pykafka_broker.protocol.errors import ErrorCode
from tests.support.groups import GroupWorld


class ShareWorld(GroupWorld):
    """The groups of one shard, some of them share groups."""

    @property
    def asked(self) -> list[Any]:
        """The work with the share coordinator that has not been done."""
        return self.work

    def share(
        self,
        member_id: str,
        member_epoch: int,
        *,
        topics: tuple[str, ...] | None = None,
        group_id: str = "g",
        rack: str | None = None,
        host: str = "/127.0.0.1",
        client: str = "client",
    ) -> ShareGroupHeartbeatResult:
        """A heartbeat of a member of a share group."""
        token = self.token()
        self.submit(
            ShareGroupHeartbeat(
                token, self.now_ms, group_id, member_id, member_epoch, client, host, rack, topics
            )
        )
        result = self.answers[token]
        assert isinstance(result, ShareGroupHeartbeatResult)
        return result

    def join_share(self, member_id: str, *topics: str, group_id: str = "g") -> ShareGroupHeartbeatResult:
        """The first heartbeat of a member."""
        return self.share(member_id, 0, topics=topics, group_id=group_id)

    def beat(self, member_id: str, member_epoch: int, *, group_id: str = "g") -> ShareGroupHeartbeatResult:
        """A heartbeat that says nothing new."""
        return self.share(member_id, member_epoch, group_id=group_id)

    def initialize(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """The share coordinator makes the states it was asked for, or answers each with an error."""
        while self.asked:
            work = self.asked.pop(0)
            assert isinstance(work, InitializeShareState)
            topics = tuple(
                (topic_id, tuple((partition, error, None) for partition, _ in partitions))
                for topic_id, partitions in work.topics
            )
            self.submit(ShareStateInitialized(self.now_ms, work, topics))

    def stable(self, *members: str, topic: str = "t") -> int:
        """These members share a topic; their epoch, which is the group's."""
        for member_id in members:
            self.join_share(member_id, topic)
        self.initialize()
        for _ in range(2):
            for member_id in members:
                self.beat(member_id, self.share_group().members[member_id].member_epoch)
        group = self.share_group()
        assert {member.member_epoch for member in group.members.values()} == {group.group_epoch}
        return group.group_epoch

    def share_group(self, group_id: str = "g") -> ShareGroup:
        group = self.state.groups[group_id]
        assert isinstance(group, ShareGroup)
        return group
