"""Consumers of both protocols do at random what real ones do, while topics change, answers are lost and the
coordinator moves; no partition ever has two owners, and in a quiet group every member gets a share.

The model is the clients: each knows only what the coordinator answered, and owns a partition until it has
released it itself. Planted bugs prove that the model finds bugs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup, Phase, Protocol
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.consumer import heartbeat, reconciliation
from pykafka_broker.coordinator.groups.core.consumer.consumer_protocol import (
    read_assignment,
    read_subscription,
)
from pykafka_broker.coordinator.groups.core.consumer.state import (
    ConsumerGroup,
    ConsumerMember,
    GroupState,
    held_partitions,
)
from pykafka_broker.coordinator.groups.core.consumer.turn import ConsumerTurn
from pykafka_broker.coordinator.groups.core.events import JoinedMember
from pykafka_broker.coordinator.groups.core.records import replay
from pykafka_broker.coordinator.groups.core.topics import TopicInfo
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from tests.support.groups import GroupWorld, MemberMetadata, check_books

Partition = tuple[bytes, int]
NAMES = ("t-1", "t-2", "u-1")
REBALANCE_TIMEOUT_MS = 15_000


class Client:
    """What both kinds of consumers have in common."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self.cluster = cluster
        self.rng = cluster.rng
        self.instance = f"pod-{number}" if self.rng.random() < 0.4 else None
        self.number = number
        self.member_id = ""
        self.owned: set[Partition] = set()
        #: How many of its turns it is switched off.
        self.away = 0

    @property
    def world(self) -> GroupWorld:
        return self.cluster.world

    @property
    def is_member(self) -> bool:
        """Does the coordinator still count on it? If not, it is a zombie and may own what it likes."""
        group = self.world.state.groups.get("g")
        return group is not None and self.member_id in group.members

    def act(self) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        raise NotImplementedError


class NewConsumer(Client):
    """A consumer with the consumer protocol."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        super().__init__(cluster, number)
        self.restart()

    def restart(self) -> None:
        self.member_id = f"new-{self.number}-{self.rng.getrandbits(32):x}"
        self.epoch = 0
        self.owned = set()
        self.told: set[Partition] | None = None
        self.must_say_all = False
        pattern = self.rng.random() < 0.3
        self.topics = None if pattern else tuple(self.rng.sample(NAMES, self.rng.randint(1, 3)))
        self.regex = self.rng.choice(["t-.*", ".*"]) if pattern else None

    def act(self) -> None:
        """One heartbeat, and perhaps what the last one asked for."""
        if self.told is not None and self.rng.random() < 0.7:
            self.owned &= self.told
            self.owned |= self.told
            self.told = None
        said: dict[str, Any] = {}
        if self.epoch == 0 or self.must_say_all:
            said = {
                "metadata": MemberMetadata(
                    self.topics, self.regex, rebalance_timeout_ms=REBALANCE_TIMEOUT_MS
                ),
                "owned": by_topic(self.owned) if self.epoch else {},
            }
        elif self.rng.random() < 0.6:
            said = {"owned": by_topic(self.owned)}
        answer = self.world.consumer(self.member_id, self.epoch, instance=self.instance, **said)
        if self.rng.random() < self.cluster.loss:
            self.must_say_all = True  # the answer does not arrive
            return
        if answer.error is ErrorCode.NONE:
            self.epoch = answer.member_epoch
            self.must_say_all = False
            if answer.assignment is not None:
                self.told = {(topic, number) for topic, numbers in answer.assignment for number in numbers}
        elif answer.error is ErrorCode.UNRELEASED_INSTANCE_ID:
            pass  # until its former self's session is over
        elif answer.error is not ErrorCode.GROUP_ID_NOT_FOUND or self.epoch:
            # Thrown out. (A classic group that still gathers its members cannot become a consumer group.)
            self.restart()

    def leave(self) -> None:
        if self.epoch:
            away = self.instance is not None and self.rng.random() < 0.5
            self.world.consumer(self.member_id, -2 if away else -1, instance=self.instance)
        self.restart()


class OldConsumer(Client):
    """A consumer with the classic protocol, which lets go of everything before it joins again."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        super().__init__(cluster, number)
        self.topics = self.rng.sample(NAMES, self.rng.randint(1, 3))
        self.generation = -1
        self.token: int | None = None
        self.step: Callable[[], None] = self.join

    def restart(self) -> None:
        self.member_id = ""
        self.owned = set()
        self.step = self.join

    def act(self) -> None:
        self.step()

    def join(self) -> None:
        self.owned = set()
        subscription = ConsumerProtocolSubscription(topics=sorted(self.topics))
        offered = tuple(Protocol(name, b"\0\1" + encode(subscription, 1)) for name in ("range", "other"))
        self.token = self.world.join(
            "g",
            self.member_id,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            protocols=offered,
            instance=self.instance,
        )
        self.step = self.await_join

    def await_join(self) -> None:
        assert self.token is not None
        if self.token not in self.world.answers:
            return
        answer = self.world.joined(self.token)
        if answer.error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.restart()
            return
        self.member_id = answer.member_id
        if answer.error is not ErrorCode.NONE:
            assert answer.error in (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.REBALANCE_IN_PROGRESS)
            self.step = self.join
            return
        self.generation = answer.generation
        leads = answer.leader_id == answer.member_id and not answer.skip_assignment
        assigned = self.cluster.divide(answer.members) if leads else None
        self.token = self.world.sync(self.member_id, self.generation, assigned, instance=self.instance)
        self.step = self.await_sync

    def await_sync(self) -> None:
        assert self.token is not None
        if self.token not in self.world.answers:
            return
        answer = self.world.synced(self.token)
        if answer.error is ErrorCode.NONE:
            assignment = read_assignment(answer.assignment) if answer.assignment else None
            self.owned = {
                (topic.topic_id, number)
                for each in (assignment.assigned_partitions if assignment else ())
                if (topic := self.world.state.topics.topic(each.topic)) is not None
                for number in each.partitions
            }
            self.step = self.work
        self.react(answer.error)

    def work(self) -> None:
        self.react(self.world.heartbeat(self.member_id, self.generation, instance=self.instance))

    def react(self, error: ErrorCode) -> None:
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.restart()
        elif error in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
            self.step = self.join
        else:
            assert error is ErrorCode.NONE

    def leave(self) -> None:
        if self.member_id and self.instance is None:
            self.world.leave(self.member_id)
        self.restart()


class Cluster:
    """Clients, topics, and the coordinator, which may move."""

    def __init__(self, seed: int, kinds: Iterable[type[NewConsumer] | type[OldConsumer]]) -> None:
        self.rng = random.Random(seed)
        self.loss = 0.05
        self.steps = 0
        #: How often the living group has changed from one protocol to the other.
        self.upgrades = self.downgrades = 0
        self.was: type = type(None)
        self.world = GroupWorld(GroupCoordinatorConfig(group_initial_rebalance_delay_ms=0))
        self.sizes = {"t-1": 4, "t-2": 2}
        self.ids = {name: name.encode().ljust(16) for name in NAMES}
        self.publish(has_new_topics=True)
        self.clients: list[NewConsumer | OldConsumer] = [kind(self, i) for i, kind in enumerate(kinds)]

    def publish(self, *, has_new_topics: bool) -> None:
        topics = [TopicInfo(name, self.ids[name], size) for name, size in self.sizes.items()]
        self.world.set_topics(*topics, has_new_topics=has_new_topics)

    def divide(self, joined: Iterable[JoinedMember]) -> dict[str, bytes]:
        """What the leader of a classic group decides."""
        topics = {each.member_id: read_subscription(each.metadata).topics for each in joined}
        result = {name: ConsumerProtocolAssignment(assigned_partitions=[]) for name in topics}
        for topic, size in self.sizes.items():
            readers = sorted(name for name, wanted in topics.items() if topic in wanted)
            for place, reader in enumerate(readers):
                numbers = list(range(place, size, len(readers)))
                result[reader].assigned_partitions.append(TopicPartition(topic=topic, partitions=numbers))
        return {name: b"\0\1" + encode(assignment, 1) for name, assignment in result.items()}

    def step(self) -> None:
        client = self.rng.choice(self.clients)
        dice = self.rng.random()
        if dice < 0.01:
            client.restart()  # the process is gone without a word
        elif dice < 0.03:
            client.leave()
            client.away = self.rng.choice([0, 0, 20, 60])
        elif dice < 0.04:
            self.change_topics()
        elif dice < 0.045:
            self.world = self.world.reload()
            for each in self.clients:
                if isinstance(each, OldConsumer) and each.step in (each.await_join, each.await_sync):
                    each.step = each.join  # its connection is gone
        if client.away:
            client.away -= 1
        else:
            client.act()
        if self.rng.random() < 0.2:
            self.world.resolve_regexes()
        self.world.advance(self.rng.choice([0, 10, 100, 400]))
        self.check()

    def change_topics(self) -> None:
        name = self.rng.choice(NAMES)
        is_new = name not in self.sizes
        if not is_new and self.rng.random() < 0.3 and len(self.sizes) > 1:
            del self.sizes[name]
            self.ids[name] = self.rng.randbytes(16)
        else:
            self.sizes[name] = self.sizes.get(name, 0) + 1
        self.publish(has_new_topics=is_new)

    # ---- what must hold ----

    def check(self) -> None:
        owners: dict[Partition, str] = {}
        for client in self.clients:
            for partition in client.owned if client.is_member else ():
                other = owners.setdefault(partition, client.member_id)
                assert other == client.member_id, f"{partition} belongs to {other} and {client.member_id}"
        group = self.world.state.groups.get("g")
        if group is not None and group.members:
            self.upgrades += (self.was, type(group)) == (ClassicGroup, ConsumerGroup)
            self.downgrades += (self.was, type(group)) == (ConsumerGroup, ClassicGroup)
            self.was = type(group)
        if isinstance(group, ClassicGroup):
            check_books(group)
        elif group is not None:
            assert isinstance(group, ConsumerGroup)
            self.check_books(group)
            self.steps += 1
            if self.steps % 20:
                return
            replayed = replay(self.world.log).groups["g"]
            assert isinstance(replayed, ConsumerGroup)
            assert replayed == group._replace(
                refresh_deadline_ms=0, is_resolving=False, expected_to_join=frozenset()
            )

    def check_books(self, group: ConsumerGroup) -> None:
        held: dict[Partition, int] = {}
        for member in group.members.values():
            for partition in held_partitions(member):
                assert partition not in held, f"{partition} is held by two members"
                held[partition] = member.member_epoch
            assert member.member_epoch <= group.assignment_epoch
            assert ("consumer-session", "g", member.member_id) in self.world.timers
        assert dict(group.partition_epochs) == held
        assert set(group.targets) <= set(group.members)
        assert group.assignment_epoch <= group.group_epoch
        assert group.classic_count == sum(member.classic is not None for member in group.members.values())

    def settle(self) -> None:
        """In a quiet group every member gets a share, and every subscribed partition has an owner."""
        self.loss = 0
        for _ in range(400):
            for client in self.clients:
                client.act()
                self.check()
            self.world.resolve_regexes()
            self.world.advance(300)
            if self.is_settled():
                return
        raise AssertionError(f"not settled: {self.world.state.groups.get('g')}")

    def is_settled(self) -> bool:
        group = self.world.state.groups["g"]
        if isinstance(group, ClassicGroup):
            done = group.phase is Phase.STABLE
        else:
            done = group.state is GroupState.STABLE and len(group.regexes) == len(group.regex_counts)
        if not done or not all(client.is_member for client in self.clients):
            return False
        owned = sorted(partition for client in self.clients for partition in client.owned)
        wanted = {topic for client in self.clients for topic in self.wanted(client)}
        return owned == sorted((self.ids[name], n) for name in wanted for n in range(self.sizes[name]))

    def wanted(self, client: NewConsumer | OldConsumer) -> set[str]:
        if client.topics is not None:
            return {name for name in client.topics if name in self.sizes}
        return {name for name in self.sizes if client.regex == ".*" or name.startswith("t-")}


def by_topic(partitions: Iterable[Partition]) -> dict[bytes, list[int]]:
    result: dict[bytes, list[int]] = {}
    for topic, number in partitions:
        result.setdefault(topic, []).append(number)
    return result


ONLY_NEW = (NewConsumer,) * 5
MIXED = (NewConsumer, OldConsumer, OldConsumer, OldConsumer)


@pytest.mark.parametrize("kinds", [ONLY_NEW, MIXED], ids=["consumer protocol", "both protocols"])
@pytest.mark.parametrize("seed", range(5))
def test_no_partition_has_two_owners_and_every_member_of_a_quiet_group_gets_a_share(
    seed: int, kinds: Any
) -> None:
    cluster = Cluster(seed, kinds)
    for _ in range(1_000):
        cluster.step()
    cluster.settle()


def test_living_groups_of_the_model_change_their_protocol_both_ways() -> None:
    cluster = Cluster(4, MIXED)
    for _ in range(1_000):
        cluster.step()
    assert cluster.upgrades
    assert cluster.downgrades


def never_owned(*_: object) -> bool:
    return False


def released_at_once(group: ConsumerGroup, *_: object) -> object:
    return group.partition_epochs.with_changes({}, list(group.partition_epochs))


def never_released(group: ConsumerGroup, _: ConsumerMember | None, after: ConsumerMember | None) -> object:
    taken = {} if after is None else dict.fromkeys(held_partitions(after), after.member_epoch)
    return group.partition_epochs.with_changes(taken)


def no_bump(*_: object, **__: object) -> None:
    return None


PLANTED: list[tuple[str, object, str, object]] = [
    ("a revocation is taken for done before it is", reconciliation, "_owns_any", never_owned),
    (
        "a partition counts as free while it is held",
        ConsumerGroup,
        "partition_epochs_after",
        released_at_once,
    ),
    ("a partition is never released", ConsumerGroup, "partition_epochs_after", never_released),
    ("a member that leaves changes nothing for the others", ConsumerTurn, "bump_epoch", no_bump),
    ("a session that ends removes no member", heartbeat, "fence_members", no_bump),
]


@pytest.mark.parametrize(("bug", "owner", "name", "wrong"), PLANTED)
def test_a_planted_bug_is_caught(
    monkeypatch: pytest.MonkeyPatch, bug: str, owner: object, name: str, wrong: object
) -> None:
    monkeypatch.setattr(owner, name, wrong)
    caught = []
    for seed in range(5):
        cluster = Cluster(seed, ONLY_NEW)
        try:
            for _ in range(300):
                cluster.step()
            cluster.settle()
        except AssertionError as error:
            caught.append(error)
            break
    assert caught, bug
