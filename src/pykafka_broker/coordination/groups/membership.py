"""What members ask: to join, to be assigned, to stay, to leave; in both protocols.

A heartbeat during the load is answered well: the session starts anew when the load is done.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Iterable

from pykafka_broker.coordination.groups.group_shards import GroupShards
from pykafka_broker.coordinator.group import events
from pykafka_broker.coordinator.group.classic.state import Protocol
from pykafka_broker.coordinator.group.events import (
    ConsumerGroupHeartbeatResult,
    JoinResult,
    LeaveResult,
    LeavingMember,
    SyncResult,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

FIRST_JOIN_VERSION_WITH_REBALANCE_TIMEOUT = 1
FIRST_JOIN_VERSION_WITH_NULL_PROTOCOL = 7
FIRST_SYNC_VERSION_WITH_PROTOCOL = 5


class Membership:
    """The requests of members."""

    def __init__(self, shards: GroupShards, new_uuid: Callable[[], str]) -> None:
        self._shards = shards
        self._new_uuid = new_uuid

    async def join(
        self,
        *,
        version: int,
        group_id: str,
        member_id: str,
        client_id: str | None,
        client_host: str,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        protocol_type: str,
        protocols: Iterable[tuple[str, bytes]],
        group_instance_id: str | None = None,
    ) -> JoinResult:
        """JoinGroup. The answer comes when the next generation begins."""
        if version < FIRST_JOIN_VERSION_WITH_REBALANCE_TIMEOUT:
            rebalance_timeout_ms = session_timeout_ms
        offered: dict[str, Protocol] = {}
        for name, metadata in protocols:
            offered.setdefault(name, Protocol(name, bytes(metadata)))
        result = await self._shards.answer(
            group_id,
            lambda token: events.JoinGroup(
                token=token,
                now_ms=self._shards.now_ms(),
                version=version,
                group_id=group_id,
                member_id=member_id,
                client_id=client_id or "",
                client_host=client_host,
                uuid=self._new_uuid(),
                session_timeout_ms=session_timeout_ms,
                rebalance_timeout_ms=rebalance_timeout_ms,
                protocol_type=protocol_type,
                protocols=tuple(offered.values()),
                group_instance_id=group_instance_id,
            ),
            refused=lambda error: JoinResult(error.code, ""),
        )
        if version < FIRST_JOIN_VERSION_WITH_NULL_PROTOCOL and result.protocol_name is None:
            return result._replace(protocol_name="")
        return result

    async def sync(
        self,
        *,
        version: int,
        group_id: str,
        member_id: str,
        generation: int,
        assignments: Iterable[tuple[str, bytes]] = (),
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> SyncResult:
        """SyncGroup. The answer comes when the leader has brought the assignment."""
        if version >= FIRST_SYNC_VERSION_WITH_PROTOCOL and None in (protocol_type, protocol_name):
            return SyncResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        assigned = tuple((member, bytes(assignment)) for member, assignment in assignments)
        return await self._shards.answer(
            group_id,
            lambda token: events.SyncGroup(
                token=token,
                now_ms=self._shards.now_ms(),
                group_id=group_id,
                member_id=member_id,
                generation=generation,
                assignments=assigned,
                group_instance_id=group_instance_id,
                protocol_type=protocol_type,
                protocol_name=protocol_name,
            ),
            refused=lambda error: SyncResult(error.code),
        )

    def heartbeat(
        self, *, group_id: str, member_id: str, generation: int, group_instance_id: str | None = None
    ) -> Awaitable[ErrorCode]:
        """Heartbeat."""
        return self._shards.answer(
            group_id,
            lambda token: events.Heartbeat(
                token, self._shards.now_ms(), group_id, member_id, generation, group_instance_id
            ),
            refused=_heartbeat_refused,
        )

    async def leave(self, *, group_id: str, members: Iterable[tuple[str, str | None]]) -> LeaveResult:
        """LeaveGroup, for members given as (member id, group instance id)."""
        leaving = tuple(LeavingMember(*member) for member in members)
        return await self._shards.answer(
            group_id,
            lambda token: events.LeaveGroup(token, self._shards.now_ms(), group_id, leaving),
            refused=lambda error: LeaveResult(error.code),
        )

    def consumer_heartbeat(
        self,
        *,
        version: int,
        group_id: str,
        member_id: str,
        member_epoch: int,
        client_id: str | None,
        client_host: str,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        subscribed_topic_names: Iterable[str] | None = None,
        subscribed_topic_regex: str | None = None,
        server_assignor: str | None = None,
        owned: Iterable[tuple[bytes, Iterable[int]]] | None = None,
    ) -> Awaitable[ConsumerGroupHeartbeatResult]:
        """ConsumerGroupHeartbeat."""
        names = None if subscribed_topic_names is None else tuple(subscribed_topic_names)
        partitions = None if owned is None else tuple((topic, tuple(each)) for topic, each in owned)
        return self._shards.answer(
            group_id,
            lambda token: events.ConsumerGroupHeartbeat(
                token=token,
                now_ms=self._shards.now_ms(),
                version=version,
                group_id=group_id,
                member_id=member_id,
                member_epoch=member_epoch,
                client_id=client_id or "",
                client_host=client_host,
                # Making one takes a seventh of a heartbeat's time, and only who joins may need it.
                uuid="" if member_id else _in_base64(self._new_uuid()),
                instance_id=instance_id,
                rack_id=rack_id,
                rebalance_timeout_ms=rebalance_timeout_ms,
                subscribed_topic_names=names,
                subscribed_topic_regex=subscribed_topic_regex,
                server_assignor=server_assignor,
                owned=partitions,
            ),
            refused=lambda error: ConsumerGroupHeartbeatResult(error.code, error.message),
        )


def _heartbeat_refused(error: KafkaError) -> ErrorCode:
    return ErrorCode.NONE if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else error.code


def _in_base64(uuid: str) -> str:
    """A UUID as Kafka writes its own."""
    digits = bytes.fromhex(uuid.replace("-", ""))
    return base64.urlsafe_b64encode(digits).decode().rstrip("=")
