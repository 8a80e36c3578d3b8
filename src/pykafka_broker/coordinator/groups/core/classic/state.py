"""The state of a classic group.

The durable part is that of the group's newest GroupMetadata record; `joining`, `syncing`,
`pending_members` and the progress of a rebalance are soft and die with the shard.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType

from pykafka_broker.protocol.java_hash import string_hash, walked
from pykafka_broker.system.named_tuple import NamedTuple

#: The protocol type of consumers; the coordinator reads the subscriptions of no other type.
CONSUMER_PROTOCOL_TYPE = "consumer"
#: How long a new member may wait for the rebalance without a heartbeat.
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000


class Phase(enum.Enum):
    """The states of a classic group, by the names Kafka shows."""

    #: No members; only committed offsets, if any.
    EMPTY = "Empty"
    #: Members are asked to join again; their JoinGroup requests are parked.
    PREPARING_REBALANCE = "PreparingRebalance"
    #: All members have joined; SyncGroup requests are parked until the leader sends the assignment.
    COMPLETING_REBALANCE = "CompletingRebalance"
    #: Every member can have its assignment.
    STABLE = "Stable"
    #: The state in which a group that does not exist is described; no group is ever stored in it.
    DEAD = "Dead"


class Protocol(NamedTuple):
    """One assignment protocol a member supports, and the member's metadata for the leader in it."""

    name: str
    metadata: bytes


class Member(NamedTuple):
    """A member of a classic group."""

    member_id: str
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    #: The protocols it supports, best first, each name once.
    protocols: tuple[Protocol, ...]
    group_instance_id: str | None = None
    assignment: bytes = b""
    #: True until its first join is answered. Until then it sends no heartbeats, and its parked request does
    #: not keep it alive.
    is_new: bool = False

    def metadata(self, protocol_name: str | None) -> bytes:
        """The member's metadata for `protocol_name`."""
        said = (protocol.metadata for protocol in self.protocols if protocol.name == protocol_name)
        return next(said, b"")

    def vote(self, candidates: frozenset[str]) -> str:
        """The first of the member's protocols that all members support."""
        return next(protocol.name for protocol in self.protocols if protocol.name in candidates)


_NOTHING: Mapping[str, int] = MappingProxyType({})
_NO_MEMBERS: Mapping[str, Member] = MappingProxyType({})
_NO_NAMES: Mapping[str, str] = MappingProxyType({})


class ClassicGroup(NamedTuple):
    """A group whose members assign the partitions among themselves (the protocol before KIP-848)."""

    group_id: str
    phase: Phase = Phase.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = None
    #: When the group became empty, or its present rebalance or generation began; the offsets of an empty
    #: group age from here (KIP-211). -1: written by an old broker.
    phase_began_ms: int = -1
    members: Mapping[str, Member] = _NO_MEMBERS
    #: group.instance.id -> member id of the static members.
    static_members: Mapping[str, str] = _NO_NAMES
    #: The number of members that support each protocol, so that a join need not ask them all.
    supporters: Mapping[str, int] = _NOTHING
    #: Topics the members of a consumer group subscribe to; None when that cannot be known.
    subscribed_topics: frozenset[str] | None = None

    #: Member ids given out with MEMBER_ID_REQUIRED and not used yet.
    pending_members: frozenset[str] = frozenset()
    #: Parked JoinGroup and SyncGroup requests: member id -> token.
    joining: Mapping[str, int] = _NOTHING
    syncing: Mapping[str, int] = _NOTHING
    #: Members that have not sent SyncGroup in this generation.
    unsynced: frozenset[str] = frozenset()
    #: The rebalance under way began from an empty group: it waits for `initial_delay_ms`, and again after
    #: each wait in which members came (`member_added`) until `initial_remaining_ms` is used up.
    is_initial_rebalance: bool = False
    member_added: bool = False
    initial_delay_ms: int = 0
    initial_remaining_ms: int = 0

    @property
    def is_simple(self) -> bool:
        """True for a group that only stores offsets and has never had a member."""
        return self.protocol_type is None and self.phase is Phase.EMPTY and not self.pending_members

    @property
    def is_consumer_group(self) -> bool:
        """True if the members speak Kafka's consumer protocol, which the coordinator can read."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def all_members_joined(self) -> bool:
        """True once there is no member left to wait for."""
        return len(self.joining) == len(self.members) and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members."""
        return max((0, *(member.rebalance_timeout_ms for member in self.members.values())))

    def supports(self, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
        """Can a client with these protocols be a member? A group with members needs one that all support."""
        if self.phase is Phase.EMPTY:
            return bool(protocol_type and protocols)
        return self.protocol_type == protocol_type and any(
            self.supporters.get(protocol.name, 0) == len(self.members) for protocol in protocols
        )

    def chosen_protocol(self) -> str:
        """The common protocol most members prefer; ties go by Java's hash order, as in Kafka."""
        candidates = frozenset(
            name for name, supporters in self.supporters.items() if supporters == len(self.members)
        )
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(walked(votes, string_hash), key=votes.__getitem__)

    def is_subscribed_to(self, topic: str) -> bool:
        """Does a member read `topic`? A consumer group with unreadable subscriptions may read any topic."""
        if self.subscribed_topics is not None:
            return topic in self.subscribed_topics
        return self.is_consumer_group
