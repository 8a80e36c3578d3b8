"""Random conversations about transactions and groups, held with Apache Kafka and with our broker.

    python -m interop.conformance.wander [--seed N] [--walks K] [--steps S] [--about transactions,classic]

A walk asks what comes to its mind: right and wrong epochs, old and new clients, ends without beginnings.
Every answer is compared as in a written conversation; what a walk does next depends on its seed
and on the answers alone. A walk that differs is told with its seed, and one that shows something new becomes
a conversation of its own in `apis/`.

Now and then a long walk differs where Apache Kafka remembers more than its log: a group that was larger keeps
a larger table, which breaks ties between members otherwise. Walks avoid what we do otherwise on purpose: a
member that brings no topic yet only joins when its group has an assignment (`accepted.py` says why).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from interop.conformance.accepted import Accepted
from interop.conformance.apis.group_records import records_of
from interop.conformance.batches import batch
from interop.conformance.consumer_groups import (
    LEAVE,
    LEAVE_FOR_A_WHILE,
    assigns_at_once,
    beating,
    joining,
    known,
    owning,
)
from interop.conformance.conversation import Case, Conversation
from interop.conformance.groups import assigned, committing, subscribed
from interop.conformance.play import Verdict, both_brokers, run
from interop.conformance.seats import Seat, Seats
from interop.conformance.talk import ANY, PAUSE_S, SET_UP_TIMEOUT_S, E, SetUpError, Talk
from interop.conformance.transactions import TRANSACTION, adding, init, with_coordinator
from pykafka_broker.protocol.fields import api_key_of
from pykafka_broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from pykafka_broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from pykafka_broker.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka_broker.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from pykafka_broker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from pykafka_broker.protocol.messages.end_txn import EndTxnRequest
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pykafka_broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.protocol.messages.records.group import ConsumerGroupRegularExpressionKey
from pykafka_broker.protocol.messages.sync_group import SyncGroupRequest
from pykafka_broker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

PARTITIONS = 2
NONE = int(E.NONE)
LATEST_OFFSET = -1
GROUP = 0


# ---- transactions ----


@dataclass
class Held:
    """The state that a producer believes in."""

    id: str
    producer_id: int = -1
    epoch: int = -1
    sequences: dict[int, int] = field(default_factory=dict)


class Transactions:
    """Two transactional ids, one topic and one group."""

    def __init__(self, talk: Talk, chance: Random) -> None:
        self.talk, self.chance = talk, chance
        self.topic = talk.topic(partitions=PARTITIONS)
        self.group = talk.name("group")
        self.producers = [Held(talk.name(label)) for label in ("one", "two")]
        for held in self.producers:
            with_coordinator(talk, held.id)
            talk.do(FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[held.id]))
        talk.do(FindCoordinatorRequest(key_type=GROUP, coordinator_keys=[self.group]))
        self.talk.do(
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=self.group, topics=[])]), version=9
        )

    def step(self) -> None:
        held = self.chance.choice(self.producers)
        steps: list[tuple[Callable[[Held], None], int]] = [
            (self.init, 2),
            (self.add, 4),
            (self.produce, 6),
            (self.add_offsets, 2),
            (self.commit_offsets, 3),
            (self.end, 6),
            (self.look, 1),
        ]
        (step,) = self.chance.choices([each for each, _ in steps], [weight for _, weight in steps])
        step(held)
        self.settle(held)

    def settle(self, held: Held) -> None:
        self.talk.ask(
            DescribeTransactionsRequest(transactional_ids=[held.id]),
            ANY,
            until=lambda answer: not answer.transaction_states[0].transaction_state.startswith("Prepare"),
        )

    def identity(self, held: Held) -> tuple[int, int]:
        """Mostly the right one."""
        other = self.producers[held is self.producers[0]]
        producer_id = self.chance.choices([held.producer_id, other.producer_id], [19, 1])[0]
        return producer_id, max(held.epoch + self.chance.choices([0, -1, 1], [16, 3, 1])[0], -1)

    def partitions(self) -> list[int]:
        return self.chance.choice([[0], [1], [0, 1]])

    def init(self, held: Held) -> None:
        version = self.chance.choice([1, 2, 3, 4, 5])
        producer_id, epoch = self.identity(held) if self.chance.random() < 0.6 else (-1, -1)
        if (producer_id == -1) != (epoch == -1):
            producer_id, epoch = -1, -1
        request = init(held.id, producer_id=producer_id, producer_epoch=epoch)
        answer = self.talk.ask(request, ANY, version=version)
        if answer.error_code == NONE:
            held.producer_id, held.epoch = answer.producer_id, answer.producer_epoch
            held.sequences.clear()

    def add(self, held: Held) -> None:
        version = self.chance.choice([0, 1, 2, 3, 3, 3, 4, 5])
        producer_id, epoch = self.identity(held)
        verify_only = version >= 4 and self.chance.random() < 0.5
        asked = (self.topic.name, self.partitions())
        request = adding(held.id, producer_id, epoch, asked, verify_only=verify_only)
        self.talk.ask(request, ANY, version=version)

    def produce(self, held: Held) -> None:
        version = self.chance.choice([9, 10, 11, 11, 12, 13, 13, 13])
        producer_id, epoch = self.identity(held)
        transactional = self.chance.random() < 0.95
        if producer_id < 0 or epoch < 0:
            return
        (partition,) = self.chance.sample(range(PARTITIONS), 1)
        sequence = held.sequences.get(partition, 0)
        given = max(sequence + self.chance.choices([0, -1, 1], [14, 1, 1])[0], 0)
        data = batch(
            b"value", producer_id=producer_id, producer_epoch=epoch, base_sequence=given,
            transactional=transactional,
        )  # fmt: skip
        topic = TopicProduceData(
            name=self.topic.name,
            topic_id=self.topic.id,
            partition_data=[PartitionProduceData(index=partition, records=data)],
        )
        transactional_id = held.id if transactional else None
        request = ProduceRequest(
            transactional_id=transactional_id, acks=-1, timeout_ms=10_000, topic_data=[topic]
        )
        answer = self.talk.ask(request, ANY, version=version)
        if answer.responses[0].partition_responses[0].error_code == NONE:
            held.sequences[partition] = max(sequence, given + 1)

    def add_offsets(self, held: Held) -> None:
        producer_id, epoch = self.identity(held)
        request = AddOffsetsToTxnRequest(
            transactional_id=held.id, producer_id=producer_id, producer_epoch=epoch, group_id=self.group
        )
        self.talk.ask(request, ANY, version=self.chance.randint(0, 4))

    def commit_offsets(self, held: Held) -> None:
        producer_id, epoch = self.identity(held)
        partitions = [
            TxnOffsetCommitRequestPartition(
                partition_index=partition, committed_offset=self.chance.randint(0, 9), committed_metadata=None
            )
            for partition in self.partitions()
        ]
        request = TxnOffsetCommitRequest(
            transactional_id=held.id,
            group_id=self.group,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=[TxnOffsetCommitRequestTopic(name=self.topic.name, partitions=partitions)],
        )
        self.talk.ask(request, ANY, version=self.chance.randint(0, 5))

    def end(self, held: Held) -> None:
        version = self.chance.choice([0, 2, 3, 4, 5, 5, 5, 5])
        producer_id, epoch = self.identity(held)
        request = EndTxnRequest(
            transactional_id=held.id,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=self.chance.random() < 0.5,
        )
        answer = self.talk.ask(request, ANY, version=version)
        if answer.error_code == NONE and version >= 5:
            held.producer_id, held.epoch = answer.producer_id, answer.producer_epoch
            held.sequences.clear()

    def look(self, _held: Held) -> None:
        everything = list(range(PARTITIONS))
        asked = [
            FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1_000_000)
            for partition in everything
        ]
        topics = [FetchTopic(topic=self.topic.name, topic_id=self.topic.id, partitions=asked)]
        for isolation_level in (0, 1):
            fetch = FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=10_000_000,
                topics=topics,
                isolation_level=isolation_level,
            )
            self.talk.ask(fetch, ANY)
            ends = [
                ListOffsetsPartition(partition_index=partition, timestamp=LATEST_OFFSET)
                for partition in everything
            ]
            listed = [ListOffsetsTopic(name=self.topic.name, partitions=ends)]
            request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=listed)
            self.talk.ask(request, ANY)
        producers = TopicRequest(name=self.topic.name, partition_indexes=everything)
        self.talk.ask(DescribeProducersRequest(topics=[producers]), ANY)
        offsets = [OffsetFetchRequestTopics(name=self.topic.name, partition_indexes=everything)]
        for stable in (False, True):
            groups = [OffsetFetchRequestGroup(group_id=self.group, topics=offsets)]
            self.talk.ask(OffsetFetchRequest(groups=groups, require_stable=stable), ANY, version=9)

    def finish(self) -> None:
        self.look(self.producers[0])


# ---- consumer groups ----


@dataclass
class Member:
    """The state that a member believes in."""

    id: str
    instance_id: str | None
    epoch: int = 0
    owned: dict[int, list[int]] = field(default_factory=dict)


class Groups:
    """Four members, two of them in one static place, of one group that follows one topic: several come in the
    order of their ids, which are random.
    """

    def __init__(self, talk: Talk, chance: Random) -> None:
        self.talk, self.chance = talk, chance
        self.group = talk.name("group")
        talk.do(FindCoordinatorRequest(key_type=GROUP, coordinator_keys=[self.group]))
        talk.do(
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=self.group, topics=[])]), version=9
        )
        assigns_at_once(talk, self.group)
        self.topics = [talk.topic(partitions=5)]
        # A coordinator may hear of the topic a moment late.
        known(talk, talk.name("warm-up"), self.topics[0])
        self.members = [
            Member(talk.name(f"member-{number}"), talk.name("static") if number >= 2 else None)
            for number in range(4)
        ]
        #: The group has changed since its last assignment.
        self.is_behind = False

    def step(self) -> None:
        member = self.chance.choice(self.members)
        steps: list[tuple[Callable[[Member], None], int]] = [
            (self.join, 3),
            (self.beat, 12),
            (self.leave, 1),
            (self.look, 2),
        ]
        (step,) = self.chance.choices([each for each, _ in steps], [weight for _, weight in steps])
        step(member)

    def subscription(self, *, joins: bool) -> dict[str, Any]:
        """Mostly to everything."""
        names = [topic.name for topic in self.topics]
        return {"names": names if joins and self.is_behind else self.chance.choices([names, []], [5, 1])[0]}

    def assignor(self) -> str | None:
        return self.chance.choices([None, "uniform", "range", "unknown"], [12, 2, 2, 1])[0]

    def heard(self, member: Member, answer: Any) -> None:
        if answer.error_code == NONE:
            member.epoch = answer.member_epoch
            self.is_behind = False
            if answer.assignment is not None:
                member.owned = {}
                for topic_id, partition in owning(answer):
                    number = [topic.id for topic in self.topics].index(topic_id)
                    member.owned.setdefault(number, []).append(partition)
        elif answer.error_code in (E.FENCED_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID):
            member.epoch, member.owned = 0, {}

    def join(self, member: Member) -> None:
        request = joining(
            self.group,
            member.id,
            **self.subscription(joins=True),
            instance_id=member.instance_id,
            rebalance_timeout_ms=60_000,
            server_assignor=self.assignor(),
        )
        self.heard(member, self.talk.ask(request, ANY))

    def beat(self, member: Member) -> None:
        if member.epoch <= 0 and self.chance.random() < 0.8:
            self.join(member)
            return
        epoch = max(member.epoch + self.chance.choices([0, -1, 1], [30, 3, 1])[0], 1)
        owned = {self.topics[number]: partitions for number, partitions in sorted(member.owned.items())}
        says_owned = self.chance.random() < 0.8
        if self.chance.random() < 0.15:
            owned = {topic: partitions[:1] for topic, partitions in owned.items()}
        more: dict[str, Any] = self.subscription(joins=False) if self.chance.random() < 0.15 else {}
        if self.chance.random() < 0.1:
            more["rack_id"] = self.chance.choice(["here", "there"])
        if member.instance_id is not None:
            more["instance_id"] = member.instance_id
        request = beating(
            self.group,
            member.id,
            epoch,
            owned=owned if says_owned else None,
            server_assignor=self.assignor() if self.chance.random() < 0.1 else None,
            **more,
        )
        self.heard(member, self.talk.ask(request, ANY))

    def leave(self, member: Member) -> None:
        epoch = self.chance.choice([LEAVE, LEAVE_FOR_A_WHILE])
        more: dict[str, Any] = {} if member.instance_id is None else {"instance_id": member.instance_id}
        self.talk.ask(beating(self.group, member.id, epoch, **more), ANY)
        self.is_behind = True
        member.epoch, member.owned = 0, {}

    def look(self, _member: Member) -> None:
        request = ConsumerGroupDescribeRequest(group_ids=[self.group], include_authorized_operations=False)
        self.talk.ask(request, ANY, in_any_order={"members": "member_id"})

    def finish(self) -> None:
        self.look(self.members[0])


class Patterns(Groups):
    """The same members, who may subscribe by regular expressions as well.

    A coordinator resolves those of a group at once when it knows none that is used, and then not again for
    ten seconds, which no walk should last.
    """

    def __init__(self, talk: Talk, chance: Random) -> None:
        super().__init__(talk, chance)
        name = self.topics[0].name
        #: The last one is none.
        self.patterns = [f"{name[:-1]}.", f"(?i){name.upper()}", f"nothing|{name}x", "", "*"]
        self.resolved: set[str] = set()
        self.waits = self.talk.another()

    def subscription(self, *, joins: bool) -> dict[str, Any]:
        said = super().subscription(joins=joins)
        if (joins and self.is_behind) or self.chance.random() < 0.3:
            return said
        (pattern,) = self.chance.choices(self.patterns, [6, 3, 2, 2, 1])
        return {
            "names": self.chance.choices([None, *said.values()], [3, 1])[0],
            "subscribed_topic_regex": pattern,
        }

    def leave(self, member: Member) -> None:
        super().leave(member)
        self.resolved &= self.used()

    def heard(self, member: Member, answer: Any) -> None:
        super().heard(member, answer)
        if answer.error_code == NONE:
            self.resolve()

    def resolve(self) -> None:
        """Wait, if the coordinator resolves expressions now."""
        used = self.used()
        knew_some, self.resolved = bool(self.resolved), self.resolved & used
        if knew_some or not used:
            return
        deadline = time.monotonic() + SET_UP_TIMEOUT_S
        while not used <= self.stored():
            if time.monotonic() > deadline:
                raise SetUpError(f"{used} are not resolved")
            time.sleep(PAUSE_S)
        self.resolved = used
        self.is_behind = True  # the topics that were found are not assigned yet

    def used(self) -> set[str]:
        """The expressions of the members."""
        request = ConsumerGroupDescribeRequest(group_ids=[self.group], include_authorized_operations=False)
        (group,) = self.waits.send(request, version=1).receive().groups
        return {each.subscribed_topic_regex for each in group.members if each.subscribed_topic_regex}

    def stored(self) -> set[str]:
        """The expressions whose topics the group's records tell."""
        found = {}
        for record in records_of(self.waits, self.group):
            if isinstance(record.key, ConsumerGroupRegularExpressionKey):
                found[record.key.regular_expression] = record.value
        return {pattern for pattern, value in found.items() if value is not None}


class Classic:
    """Four members, two of them static, of a classic group that takes no more.

    Walks avoid what our broker answers and Apache Kafka does not: the first of two joins of one member, the
    sync of who is removed meanwhile, and the joins of those who have waited for one that is refused.
    """

    def __init__(self, talk: Talk, chance: Random) -> None:
        self.talk, self.chance = talk, chance
        self.group = talk.name("group")
        self.topic = talk.topic()
        talk.do(FindCoordinatorRequest(key_type=GROUP, coordinator_keys=[self.group]))
        talk.do(
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=self.group, topics=[])]), version=9
        )
        instances = [None, None, talk.name("static-2"), talk.name("static-3")]
        self.seats = Seats(
            (Seat(number, self.group, talk.another(), each) for number, each in enumerate(instances)), chance
        )
        self.counted = 0

    def step(self) -> None:
        seat = self.chance.choice(self.seats.all)
        steps: list[tuple[Callable[[Seat], None], int]] = [(self.beat, 3), (self.look, 1)]
        if seat.id:
            steps.append((self.commit, 1))
        pending = seat.pending
        waits_for_assignment = pending is not None and pending.api_key == api_key_of(SyncGroupRequest)
        if seat.id and not seat.leads and not waits_for_assignment:
            # Who follows a leader that leaves is chance with Apache Kafka; here it is the oldest member.
            steps.append((self.leave, 1))
        if seat.pending is None:
            steps += [(self.join, 16 if seat.must_join else 2), (self.sync, 16 if seat.must_sync else 1)]
        (step,) = self.chance.choices([each for each, _ in steps], [weight for _, weight in steps])
        step(seat)

    def protocols(self, seat: Seat) -> dict[str, bytes]:
        """The protocols that a member brings; another version of them now and then."""
        self.counted += 1
        data = f"{seat.number}-{self.counted if self.chance.random() < 0.15 else 0}".encode()
        names = self.chance.choices(
            [("range",), ("range", "sticky"), ("sticky", "range"), ("own",)], [8, 4, 4, 1]
        )[0]
        return {name: subscribed(data) for name in names}

    def join(self, seat: Seat) -> None:
        """A static member comes anew as often as it comes back; few use the name of another.

        No member joins twice at once: the first join of the two is answered here, and never by Apache Kafka.
        """
        member_id: str | None = None
        if seat.instance is not None and self.chance.random() < 0.4:
            member_id = ""
        elif self.chance.random() < 0.05 and (seat.instance is not None or not seat.id):
            others = [] if seat.instance is None else [each.id for each in self.seats.all]
            member_id = self.chance.choice([*others, "stranger"])
        self.seats.join(seat, self.protocols(seat), member_id=member_id)

    def sync(self, seat: Seat) -> None:
        self.counted += 1
        self.seats.sync(seat, dict.fromkeys(seat.members, f"share {self.counted}".encode()))

    def beat(self, seat: Seat) -> None:
        self.seats.beat(seat, self.talk)

    def leave(self, seat: Seat) -> None:
        self.seats.leave(seat, self.talk)

    def commit(self, seat: Seat) -> None:
        request = committing(
            self.group,
            self.topic,
            {0: self.chance.randint(0, 9)},
            member_id=seat.id,
            generation=seat.generation + self.chance.choices([0, -1], [5, 1])[0],
            instance=seat.instance,
        )
        self.talk.ask(request, ANY, version=self.chance.choice((7, 8, 9)))

    def look(self, _seat: Seat) -> None:
        """While no member waits: then all ids are known by which members are told apart."""
        if not any(seat.pending for seat in self.seats.all):
            request = DescribeGroupsRequest(groups=[self.group])
            self.talk.ask(request, ANY, version=5, in_any_order={"members": "member_id"})

    def finish(self) -> None:
        self.look(self.seats.all[0])


class Migrating(Groups):
    """Members of the newer kind and classic ones in one group, which becomes a classic one and back again.

    The classic ones bring ids of their own, which a group of the newer kind lets them.
    """

    def __init__(self, talk: Talk, chance: Random) -> None:
        super().__init__(talk, chance)
        self.members = self.members[:2] + self.members[3:]
        seats = (
            Seat(number, self.group, talk.another(), id=talk.name(f"classic-{number}")) for number in range(2)
        )
        self.seats = Seats(seats, chance)
        self.ids = [seat.id for seat in self.seats.all]

    def step(self) -> None:
        if self.chance.random() < 0.5:
            super().step()
            self.seats.settle()
            return
        seat = self.chance.choice(self.seats.all)
        seat.id = self.ids[seat.number]
        steps: list[tuple[Callable[[Seat], None], int]] = [(self.classic_beat, 4), (self.classic_leave, 1)]
        if seat.pending is None:
            steps += [
                (self.classic_join, 12 if seat.must_join else 1),
                (self.classic_sync, 12 if seat.must_sync else 1),
            ]
        (step,) = self.chance.choices([each for each, _ in steps], [weight for _, weight in steps])
        step(seat)

    def classic_join(self, seat: Seat) -> None:
        topics = [topic.name for topic in self.topics]
        names = self.chance.choices([("range",), ("range", "sticky"), ("own",)], [8, 4, 1])[0]
        self.seats.join(seat, {name: subscribed(b"", *topics) for name in names})
        self.is_behind = False

    def classic_sync(self, seat: Seat) -> None:
        share = assigned(**{self.topics[0].name: [seat.number]})
        self.seats.sync(seat, dict.fromkeys(seat.members, share))

    def classic_beat(self, seat: Seat) -> None:
        self.seats.beat(seat, self.talk)

    def classic_leave(self, seat: Seat) -> None:
        self.seats.leave(seat, self.talk)
        self.is_behind = True

    def look(self, member: Member) -> None:
        super().look(member)
        self.talk.ask(DescribeGroupsRequest(groups=[self.group]), ANY, version=6)


#: Differences of every walk that say nothing new.
ACCEPTED = (
    Accepted(
        "in another order",
        "wander/*",
        {"*.partitions.order": "*", "*.aborted_transactions.order": "*"},
        "Partitions come as a table of any size has them, aborted transactions by their start.",
    ),
)

WALKS: dict[str, Callable[[Talk, Random], Transactions | Groups | Classic]] = {
    "transactions": Transactions,
    "groups": Groups,
    "patterns": Patterns,
    "classic": Classic,
    "migrating": Migrating,
}


def walk(about: str, seed: int, steps: int, talk: Talk) -> None:
    wanderer = WALKS[about](talk, Random(seed))
    for _ in range(steps):
        wanderer.step()
    wanderer.finish()


def cases(about: list[str], seed: int, walks: int, steps: int) -> list[Case]:
    """Alone: Apache Kafka asks about the partitions of several transactions at once, and answers all as it
    answers a client of the first one's age.
    """
    return [
        Case(
            Conversation("wander", f"{each}_{number}", (0,), True, False, partial(walk, each, number, steps)),
            0,
        )
        for each in about
        for number in range(seed, seed + walks)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m interop.conformance.wander", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--walks", type=int, default=20)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--about", default=",".join(WALKS), help="of %(default)s")
    asked = parser.parse_args()
    with both_brokers() as (apache, ours):
        walks = cases(asked.about.split(","), asked.seed, asked.walks, asked.steps)
        results = run(walks, apache, ours, accepted=ACCEPTED)
    unequal = [result for result in results if result.verdict in (Verdict.DIFFERENT, Verdict.BROKEN)]
    for result in unequal:
        print(f"{result.verdict.value}: {result.case}: {result.problem}")
        for difference in result.of_value[:3]:
            print(f"    {difference}")
    print(f"{len(results) - len(unequal)} of {len(results)} walks of {asked.steps} steps equal")
    return 1 if unequal else 0


if __name__ == "__main__":
    sys.exit(main())
