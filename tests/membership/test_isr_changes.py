"""The way of a change of the in-sync replicas to the controller, and of the answer back to the leader."""

from __future__ import annotations

import asyncio
from functools import partial

from pykafka_broker.controller.core import events
from pykafka_broker.controller.core.events import InSyncReplicas, IsrChange, IsrChangeResult, IsrMember
from pykafka_broker.membership.isr_changes import RETRY_PAUSE_MS, QueuedIsrChanges
from pykafka_broker.metadata.publisher import MetadataPublisher
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages import create_topics
from pykafka_broker.replication.core.events import IsrChangeAnswered, IsrProposal
from pykafka_broker.testing.clock import VirtualClock
from pykafka_broker.testing.home import until
from tests.support.clusters import Cluster

ORDERS, PAYMENTS = b"o" * 16, b"p" * 16
NODE_ID = 1
CHANGE = IsrProposal(5, 7, ((NODE_ID, -1), (2, 40)))
MADE = InSyncReplicas(NODE_ID, 5, (1, 2), 8)
DONE = IsrChangeResult(ErrorCode.NONE, MADE)

Outcome = Exception | tuple[IsrChangeResult | None, ...]


class Controller:
    """A controller that answers when a test says so."""

    def __init__(self) -> None:
        self.requests: list[tuple[int, list[IsrChange]]] = []
        self._answers: asyncio.Queue[Outcome] = asyncio.Queue()

    async def ask(self, event: events.AlterPartition) -> tuple[IsrChangeResult | None, ...]:
        self.requests.append((event.broker_epoch, list(event.changes)))
        answer = await self._answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def answer(self, answer: Outcome) -> None:
        self._answers.put_nowait(answer)
        await turns()


class Leaders:
    """The partitions led by a broker whose registration has epoch 30."""

    def __init__(self) -> None:
        self.controller = Controller()
        self.clock = VirtualClock()
        self.broker_epoch = 30
        self.changes = QueuedIsrChanges(
            self.controller,  # type: ignore[arg-type]  # one method of it
            NODE_ID,
            lambda: self.broker_epoch,
            self.clock,
        )
        self.told: list[tuple[bytes, int, IsrChangeAnswered]] = []

    def ask(self, topic_id: bytes, partition: int, change: IsrProposal = CHANGE) -> None:
        self.changes.alter_partition(
            topic_id, partition, change, lambda answer: self.told.append((topic_id, partition, answer))
        )


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def wanted(topic_id: bytes, partition: int, own_epoch: int = 30) -> IsrChange:
    return IsrChange(topic_id, partition, 5, 7, (IsrMember(NODE_ID, own_epoch), IsrMember(2, 40)))


async def test_a_request_that_fails_in_any_way_is_followed_by_the_next() -> None:
    leaders = Leaders()
    leaders.ask(ORDERS, 0)
    await turns()
    await leaders.controller.answer(ValueError("an answer that cannot be read"))
    assert leaders.told == []

    leaders.clock.advance(RETRY_PAUSE_MS)
    await turns()
    await leaders.controller.answer((DONE,))
    assert leaders.told == [(ORDERS, 0, IsrChangeAnswered(CHANGE, ErrorCode.NONE, MADE))]


async def test_all_that_is_asked_for_at_once_is_one_request_with_the_brokers_own_epoch() -> None:
    leaders = Leaders()
    leaders.ask(ORDERS, 0)
    leaders.ask(PAYMENTS, 3)
    await turns()
    assert leaders.controller.requests == [(30, [wanted(ORDERS, 0), wanted(PAYMENTS, 3)])]

    fenced = IsrChangeResult(ErrorCode.FENCED_LEADER_EPOCH)
    await leaders.controller.answer((DONE, fenced))

    assert leaders.told == [
        (ORDERS, 0, IsrChangeAnswered(CHANGE, ErrorCode.NONE, MADE)),
        (PAYMENTS, 3, IsrChangeAnswered(CHANGE, ErrorCode.FENCED_LEADER_EPOCH)),
    ]
    await leaders.changes.close()


async def test_what_is_asked_for_while_a_request_is_on_its_way_goes_with_the_next() -> None:
    leaders = Leaders()
    leaders.ask(ORDERS, 0)
    await turns()
    leaders.ask(PAYMENTS, 1)
    leaders.ask(PAYMENTS, 2)
    await turns()
    assert len(leaders.controller.requests) == 1

    await leaders.controller.answer((DONE,))

    assert leaders.controller.requests[1:] == [(30, [wanted(PAYMENTS, 1), wanted(PAYMENTS, 2)])]
    await leaders.controller.answer((DONE, DONE))
    assert [(topic_id, partition) for topic_id, partition, _ in leaders.told] == [
        (ORDERS, 0),
        (PAYMENTS, 1),
        (PAYMENTS, 2),
    ]


async def test_a_partition_has_one_change_under_way_even_if_its_leadership_has_changed_meanwhile() -> None:
    leaders = Leaders()
    leaders.ask(ORDERS, 0)
    await turns()
    newer = CHANGE._replace(leader_epoch=6)

    leaders.ask(ORDERS, 0, newer)

    assert leaders.told == [(ORDERS, 0, IsrChangeAnswered(newer, ErrorCode.OPERATION_NOT_ATTEMPTED))]
    await leaders.controller.answer((IsrChangeResult(ErrorCode.FENCED_LEADER_EPOCH),))
    leaders.ask(ORDERS, 0, newer)
    await leaders.clock.pass_time(RETRY_PAUSE_MS)
    assert [change.leader_epoch for _, [change] in leaders.controller.requests] == [5, 6]
    await leaders.changes.close()


async def test_a_request_that_failed_is_made_again_with_all_changes_and_the_epoch_of_that_time() -> None:
    leaders = Leaders()
    leaders.ask(ORDERS, 0)
    await turns()
    await leaders.controller.answer(KafkaError(ErrorCode.STALE_BROKER_EPOCH))
    leaders.broker_epoch = 31
    leaders.ask(PAYMENTS, 1)
    await leaders.clock.pass_time(RETRY_PAUSE_MS - 1)
    assert len(leaders.controller.requests) == 1

    await leaders.clock.pass_time(1)

    assert leaders.controller.requests[1:] == [(31, [wanted(ORDERS, 0, 31), wanted(PAYMENTS, 1, 31)])]
    await leaders.controller.answer(KafkaError(ErrorCode.REQUEST_TIMED_OUT))
    await leaders.clock.pass_time(RETRY_PAUSE_MS)
    await leaders.controller.answer((DONE, DONE))
    assert len(leaders.told) == 2


async def test_a_partition_that_the_controller_left_out_is_asked_for_again() -> None:
    leaders = Leaders()
    leaders.ask(ORDERS, 0)
    leaders.ask(PAYMENTS, 1)
    await turns()
    await leaders.controller.answer((None, DONE))
    assert [(topic_id, partition) for topic_id, partition, _ in leaders.told] == [(PAYMENTS, 1)]

    await leaders.clock.pass_time(RETRY_PAUSE_MS)

    assert leaders.controller.requests[1:] == [(30, [wanted(ORDERS, 0)])]
    await leaders.changes.close()


async def test_a_leader_that_tries_again_after_an_error_does_so_after_the_pause() -> None:
    leaders = Leaders()

    def again(answer: IsrChangeAnswered) -> None:
        leaders.changes.alter_partition(ORDERS, 0, CHANGE, lambda _: None)

    leaders.changes.alter_partition(ORDERS, 0, CHANGE, again)
    await turns()
    await leaders.controller.answer((IsrChangeResult(ErrorCode.UNKNOWN_SERVER_ERROR),))
    assert len(leaders.controller.requests) == 1
    await leaders.clock.pass_time(RETRY_PAUSE_MS)
    assert len(leaders.controller.requests) == 2
    await leaders.changes.close()


def knows(publisher: MetadataPublisher, topic: str) -> bool:
    return topic in publisher.image.topics


async def test_the_controller_here_and_the_one_on_another_node_change_an_isr_alike() -> None:
    cluster = Cluster(2, brokers=1)
    async with cluster.running():
        active = await cluster.leader()
        for node_id in cluster.homes:
            node = cluster.broker(node_id).node
            other = next(n for n in cluster.homes if n != node_id)
            name = f"led-by-{node_id}"
            topic = create_topics.CreatableTopic(
                name=name,
                num_partitions=-1,
                replication_factor=-1,
                assignments=[
                    create_topics.CreatableReplicaAssignment(partition_index=0, broker_ids=[node_id, other])
                ],
                configs=[],
            )
            async with cluster.user_of(active) as user:
                created = await user.send(create_topics.CreateTopicsRequest(topics=[topic]), 7)
            assert created.topics[0].error_code == 0
            await until(partial(knows, node.metadata, name))
            image = node.image.topics[name]
            epoch = node.broker.lifecycle.broker_epoch
            smaller = IsrChange(image.topic_id, 0, 0, 0, (IsrMember(node_id, epoch),))
            unknown = smaller._replace(topic_id=b"u" * 16)

            results = await node.controller.ask(events.AlterPartition(node_id, epoch, (smaller, unknown)))

            made = InSyncReplicas(node_id, 0, (node_id,), 1)
            assert results == (
                IsrChangeResult(ErrorCode.NONE, made),
                IsrChangeResult(ErrorCode.UNKNOWN_TOPIC_ID),
            )
