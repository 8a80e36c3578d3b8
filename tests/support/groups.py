"""A group coordinator's core in a world of its own (`core_world.py`)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple, Self

from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup, Phase, Protocol
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.consumer.regexes import matching_topics
from pykafka_broker.coordinator.groups.core.consumer.state import ConsumerGroup
from pykafka_broker.coordinator.groups.core.consumer.turn import ResolveRegexes
from pykafka_broker.coordinator.groups.core.events import (
    ConsumerGroupHeartbeatResult,
    Event,
    JoinResult,
    PartitionCommit,
    SyncResult,
    TopicCommit,
)
from pykafka_broker.coordinator.groups.core.offset_record import OffsetRecord
from pykafka_broker.coordinator.groups.core.record import AnyRecord, Record, decode_record, encode_record
from pykafka_broker.coordinator.groups.core.records import Entry, replay
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.topics import TopicInfo, Topics
from pykafka_broker.coordinator.groups.core.transactional_records import TransactionalRecord, TransactionEnd
from pykafka_broker.coordinator.groups.core.transitions import transition
from pykafka_broker.machine.step import Step
from tests.support.core_world import START_MS as START_MS
from tests.support.core_world import CoreWorld
from tests.support.members import NO_MEMBER, Member


def subscription(*topics: str) -> bytes:
    """The consumer protocol's metadata for a subscription to `topics`."""
    names = b"".join(len(topic).to_bytes(2) + topic.encode() for topic in topics)
    return b"\x00\x01" + len(topics).to_bytes(4) + names + b"\xff\xff\xff\xff"


RANGE = (Protocol("range", subscription("t")),)


class MemberMetadata(NamedTuple):
    """What a member of a consumer group says when it joins, and again when it changes; the rest stays."""

    topics: tuple[str, ...] | None = None
    regex: str | None = None
    assignor: str | None = None
    rack: str | None = None
    rebalance_timeout_ms: int = -1


UNCHANGED = MemberMetadata()
#: The settings of a broker for which none are given.
DEFAULT_CONFIG = GroupCoordinatorConfig()


class GroupWorld(CoreWorld[Groups, GroupCoordinatorConfig, Entry]):
    """The groups of one shard."""

    def __init__(self, config: GroupCoordinatorConfig = DEFAULT_CONFIG, state: Groups | None = None) -> None:
        super().__init__(config, state or Groups.empty())
        self._metadata_version = 0

    # ---- driving ----

    def step(self, event: Event) -> Step[Groups]:
        return transition(self.state, event, self.config)

    def read_back(self, record: object) -> Entry:
        return through_bytes(record)

    def timer_fired(self, key: Hashable) -> Event:
        return events.TimerFired(key, self.now_ms)

    def reload(self) -> Self:
        """Another broker takes over: only the log is left."""
        other = type(self)(self.config, replay(self.log))
        other.follow(self)
        other._metadata_version = self._metadata_version
        other.submit(events.TopicsChanged(self.state.topics, frozenset(), False))
        other.submit(events.Loaded(other.now_ms))
        return other

    # ---- requests; each returns its token, or its answer where that comes at once ----

    def join(
        self,
        group_id: str = "g",
        member_id: str = "",
        *,
        version: int = 9,
        session_timeout_ms: int = 10_000,
        rebalance_timeout_ms: int = 60_000,
        protocol_type: str = "consumer",
        protocols: tuple[Protocol, ...] = RANGE,
        instance: str | None = None,
    ) -> int:
        token = self.token()
        self.submit(
            events.JoinGroup(
                token,
                self.now_ms,
                version,
                group_id,
                member_id,
                "client",
                "/127.0.0.1",
                str(token),
                session_timeout_ms,
                rebalance_timeout_ms,
                protocol_type,
                protocols,
                instance,
            )
        )
        return token

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        group_id: str = "g",
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> int:
        token = self.token()
        assigned = tuple((assignments or {}).items())
        self.submit(
            events.SyncGroup(
                token,
                self.now_ms,
                group_id,
                member_id,
                generation,
                assigned,
                instance,
                protocol_type,
                protocol_name,
            )
        )
        return token

    def heartbeat(
        self, member_id: str, generation: int, *, group_id: str = "g", instance: str | None = None
    ) -> Any:
        token = self.token()
        self.submit(events.Heartbeat(token, self.now_ms, group_id, member_id, generation, instance))
        return self.answers[token]

    def leave(self, *members: str, group_id: str = "g", instances: Iterable[str] = ()) -> Any:
        token = self.token()
        leaving = [events.LeavingMember(member) for member in members]
        leaving += [events.LeavingMember("", instance) for instance in instances]
        self.submit(events.LeaveGroup(token, self.now_ms, group_id, tuple(leaving)))
        return self.answers[token]

    def commit(
        self,
        offsets: dict[tuple[str, int], int],
        member: Member = NO_MEMBER,
        *,
        group_id: str = "g",
        version: int = 8,
        metadata: str | None = None,
        retention_ms: int = -1,
        topic_id: bytes = bytes(16),
    ) -> Any:
        """Commit; answers {(topic, partition): error}."""
        token = self.token()
        topics = tuple(
            TopicCommit(topic, (PartitionCommit(partition, offset, 7, metadata),), topic_id)
            for (topic, partition), offset in offsets.items()
        )
        self.submit(
            events.CommitOffsets(
                token,
                self.now_ms,
                version,
                group_id,
                topics,
                *member,
                retention_ms,
            )
        )
        return {
            (topic, partition): error
            for topic, _, partitions in self.answers[token]
            for partition, error in partitions
        }

    def fetch(self, group_id: str = "g") -> dict[tuple[str, int], int]:
        """All committed offsets of a group."""
        token = self.token()
        self.submit(events.FetchOffsets(token, group_id, None))
        return {
            (topic, fetched.partition): fetched.offset
            for topic, _, partitions in self.answers[token].topics
            for fetched in partitions
        }

    def set_topics(self, *topics: TopicInfo, has_new_topics: bool = True) -> None:
        """The cluster has these topics from now on."""
        by_name = {topic.name: topic for topic in topics}
        before = self.state.topics
        changed = {name for name in {*before.names(), *by_name} if before.topic(name) != by_name.get(name)}
        self._metadata_version += 1
        directory = Topics(by_name, self._metadata_version)
        self.submit(events.TopicsChanged(directory, frozenset(changed), has_new_topics))

    def consumer(
        self,
        member_id: str,
        member_epoch: int,
        metadata: MemberMetadata = UNCHANGED,
        *,
        group_id: str = "g",
        version: int = 1,
        instance: str | None = None,
        owned: Mapping[bytes, Iterable[int]] | None = None,
    ) -> ConsumerGroupHeartbeatResult:
        """A heartbeat of the consumer protocol."""
        token = self.token()
        claimed = None
        if owned is not None:
            claimed = tuple((topic_id, tuple(sorted(partitions))) for topic_id, partitions in owned.items())
        self.submit(
            events.ConsumerGroupHeartbeat(
                token,
                self.now_ms,
                version,
                group_id,
                member_id,
                member_epoch,
                "client",
                "/127.0.0.1",
                f"made-{token}",
                instance,
                metadata.rack,
                metadata.rebalance_timeout_ms,
                metadata.topics,
                metadata.regex,
                metadata.assignor,
                claimed,
            )
        )
        result = self.answers[token]
        assert isinstance(result, ConsumerGroupHeartbeatResult)
        return result

    def join_consumer(
        self,
        member_id: str,
        *topics: str,
        regex: str | None = None,
        assignor: str | None = None,
        rack: str | None = None,
        group_id: str = "g",
        version: int = 1,
        instance: str | None = None,
    ) -> ConsumerGroupHeartbeatResult:
        """The first heartbeat of a member of a consumer group."""
        metadata = MemberMetadata(topics or None, regex, assignor, rack, rebalance_timeout_ms=60_000)
        return self.consumer(
            member_id, 0, metadata, group_id=group_id, version=version, instance=instance, owned={}
        )

    def resolve_regexes(self) -> None:
        """Do what the shell would: match the expressions it was asked to against the topics."""
        work, self.work = self.work, []
        for each in work:
            assert isinstance(each, ResolveRegexes)
            resolved = matching_topics(each.regexes, self.state.topics.names())
            self.submit(
                events.RegexesResolved(
                    self.now_ms, each.group_id, each.started_ms, self.state.topics.version, resolved
                )
            )

    def ask(self, event_class: Any, *fields: Any) -> Any:
        """Submit `event_class(token, *fields)` and return the answer."""
        token = self.token()
        self.submit(event_class(token, *fields))
        return self.answers[token]

    # ---- longer stories ----

    def group(self, group_id: str = "g") -> ClassicGroup:
        group = self.state.groups[group_id]
        assert isinstance(group, ClassicGroup)
        return group

    def consumer_group(self, group_id: str = "g") -> ConsumerGroup:
        group = self.state.groups[group_id]
        assert isinstance(group, ConsumerGroup)
        return group

    def new_member_id(self, group_id: str = "g", **joining: Any) -> str:
        """The id the coordinator gives to a member that joins for the first time."""
        answer = self.answers[self.join(group_id, **joining)]
        assert isinstance(answer, JoinResult)
        return answer.member_id

    def stable_group(self, members: int = 1, group_id: str = "g", **joining: Any) -> list[str]:
        """A stable group with that many dynamic members; returns their ids, the leader first."""
        ids = [self.new_member_id(group_id, **joining) for _ in range(members)]
        for member_id in ids:
            self.join(group_id, member_id, **joining)
        while self.group(group_id).phase is Phase.PREPARING_REBALANCE:
            self.fire(("join", group_id))
        group = self.group(group_id)
        assert group.leader_id is not None
        for member_id in ids:
            assignments = {name: f"for {name}".encode() for name in ids}
            self.sync(
                member_id,
                group.generation,
                assignments if member_id == group.leader_id else None,
                group_id=group_id,
            )
        assert self.group(group_id).phase is Phase.STABLE
        return ids

    def joined(self, token: int) -> JoinResult:
        result = self.answers[token]
        assert isinstance(result, JoinResult)
        return result

    def synced(self, token: int) -> SyncResult:
        result = self.answers[token]
        assert isinstance(result, SyncResult)
        return result


def through_bytes(record: object) -> Entry:
    """The record as it is read back from a log; a marker as it is."""
    if isinstance(record, TransactionalRecord):
        read = through_bytes(record.record)
        assert isinstance(read, OffsetRecord)
        return record._replace(record=read)
    if isinstance(record, TransactionEnd):
        return record
    assert isinstance(record, (Record, OffsetRecord))
    decoded = decode_record(*encode_record(record))
    assert decoded is not None
    return decoded


def plain(entry: Entry) -> AnyRecord:
    """An entry of a log without transactions."""
    assert isinstance(entry, (Record, OffsetRecord))
    return entry


def durable(group: ClassicGroup) -> ClassicGroup:
    """A stable or empty group as far as it survives a restart: members keep the chosen protocol only."""
    members = {
        member.member_id: member._replace(
            protocols=(Protocol(group.protocol_name or "", member.metadata(group.protocol_name)),),
            is_new=False,
        )
        for member in group.members.values()
    }
    return ClassicGroup(
        group.group_id,
        group.phase,
        group.generation,
        group.protocol_type,
        group.protocol_name,
        group.leader_id,
        group.phase_began_ms,
        members,
        dict(group.static_members),
        {group.protocol_name or "": len(members)} if members else {},
        group.subscribed_topics,
    )


def check_books(group: ClassicGroup) -> None:
    """Counts and indexes must agree with the members that they are about."""
    assert set(group.joining) <= set(group.members)
    assert set(group.syncing) <= set(group.members)
    assert group.unsynced <= set(group.members)
    assert not group.pending_members & set(group.members)
    assert group.static_members == {
        member.group_instance_id: member.member_id
        for member in group.members.values()
        if member.group_instance_id is not None
    }
    counted: dict[str, int] = {}
    for member in group.members.values():
        for protocol in member.protocols:
            counted[protocol.name] = counted.get(protocol.name, 0) + 1
    assert group.supporters == counted
    assert (group.leader_id in group.members) if group.members else group.leader_id is None
    assert group.joining == {} or group.phase is Phase.PREPARING_REBALANCE
    assert group.syncing == {} or group.phase is Phase.COMPLETING_REBALANCE
    assert bool(group.members) or group.phase in (Phase.EMPTY, Phase.PREPARING_REBALANCE)
    if group.phase in (Phase.COMPLETING_REBALANCE, Phase.STABLE):
        assert counted[group.protocol_name or ""] == len(group.members)
