"""Requests of groups without the wire: each builds its event and asks the service, as its handler does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from pykafka_broker.coordinator.groups import refusals
from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.coordinator.groups.core.classic.state import Protocol
from pykafka_broker.coordinator.groups.core.events import (
    CommitResult,
    ConsumerGroupHeartbeatResult,
    DeleteOffsetsResult,
    DescribedGroup,
    FetchResult,
    JoinResult,
    LeaveResult,
    LeavingMember,
    ListedGroup,
    SyncResult,
    TopicCommit,
    TopicPartitions,
)
from pykafka_broker.coordinator.groups.service import GroupService
from pykafka_broker.protocol.errors import ErrorCode


class GroupRequests:
    """What clients of group "g", if no other is named, ask a service."""

    def __init__(self, service: GroupService) -> None:
        self.service = service

    async def join(
        self,
        member_id: str,
        protocols: Sequence[tuple[str, bytes]],
        *,
        version: int = 9,
        group_id: str = "g",
    ) -> JoinResult:
        return await self.service.answer(
            group_id,
            lambda token: events.JoinGroup(
                token=token,
                now_ms=self.service.now_ms(),
                version=version,
                group_id=group_id,
                member_id=member_id,
                client_id="client",
                client_host="/127.0.0.1",
                uuid=self.service.new_uuid(),
                session_timeout_ms=10_000,
                rebalance_timeout_ms=60_000,
                protocol_type="consumer",
                protocols=tuple(Protocol(name, metadata) for name, metadata in protocols),
            ),
            refused=partial(refusals.join, member_id),
        )

    async def sync(
        self, member_id: str, generation: int, assignments: Iterable[tuple[str, bytes]] = ()
    ) -> SyncResult:
        assigned = tuple(assignments)
        return await self.service.answer(
            "g",
            lambda token: events.SyncGroup(
                token, self.service.now_ms(), "g", member_id, generation, assigned
            ),
            refused=refusals.sync,
        )

    async def heartbeat(self, member_id: str, generation: int) -> ErrorCode:
        return await self.service.answer(
            "g",
            lambda token: events.Heartbeat(token, self.service.now_ms(), "g", member_id, generation),
            refused=refusals.heartbeat,
        )

    async def consumer_heartbeat(
        self, member_id: str, member_epoch: int, *, regex: str | None = None
    ) -> ConsumerGroupHeartbeatResult:
        """A heartbeat of the consumer protocol; with `regex` one that joins."""
        joins = regex is not None
        return await self.service.answer(
            "g",
            lambda token: events.ConsumerGroupHeartbeat(
                token,
                self.service.now_ms(),
                1,
                "g",
                member_id,
                member_epoch,
                "client",
                "/127.0.0.1",
                "",
                rebalance_timeout_ms=60_000 if joins else -1,
                subscribed_topic_regex=regex,
                owned=() if joins else None,
            ),
            refused=refusals.consumer_group_heartbeat,
        )

    async def leave(self, *member_ids: str) -> LeaveResult:
        leaving = tuple(LeavingMember(member_id) for member_id in member_ids)
        return await self.service.answer(
            "g",
            lambda token: events.LeaveGroup(token, self.service.now_ms(), "g", leaving),
            refused=refusals.leave,
        )

    async def commit(self, *topics: TopicCommit, group_id: str = "g") -> CommitResult:
        return await self.service.answer(
            group_id,
            lambda token: events.CommitOffsets(token, self.service.now_ms(), 8, group_id, topics),
            refused=lambda error: refusals.commit(topics, error),
        )

    async def fetch(self, group_id: str = "g") -> FetchResult:
        return await self.service.answer(
            group_id,
            lambda token: events.FetchOffsets(token, group_id, None),
            refused=refusals.fetch,
        )

    async def delete_offsets(self, *topics: TopicPartitions) -> DeleteOffsetsResult:
        return await self.service.answer(
            "g", lambda token: events.DeleteOffsets(token, "g", topics), refused=refusals.delete_offsets
        )

    async def list(self, *states: str) -> tuple[ErrorCode, list[ListedGroup]]:
        return await self.service.list_all(lambda token: events.ListGroups(token, states))

    async def describe(self, group_id: str = "g") -> DescribedGroup:
        return await self.service.answer(
            group_id,
            lambda token: events.DescribeGroup(token, 6, group_id),
            refused=lambda error: refusals.describe(group_id, error),
        )

    async def delete(self, group_id: str = "g") -> ErrorCode:
        return await self.service.answer(
            group_id, lambda token: events.DeleteGroup(token, group_id), refused=refusals.delete
        )
