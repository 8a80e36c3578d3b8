"""How share coordinators are asked: here and on other brokers, again after what passes by, and in order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from pykafka_broker.coordinator.share.attempts import (
    MAX_ATTEMPTS,
    PASSING,
    Again,
    Attempts,
    after_lookup,
    after_refusal,
)
from pykafka_broker.coordinator.share.core.batches import StateBatch
from pykafka_broker.coordinator.share.core.events import ReadResult, Refusal, StateResult, SummaryResult
from pykafka_broker.coordinator.share.persister import NO_COORDINATOR, Persister, ShareMap
from pykafka_broker.coordinator.share.remote_states import RemoteStates
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
from pykafka_broker.protocol.messages import delete_share_group_state as deleting
from pykafka_broker.protocol.messages import initialize_share_group_state as initializing
from pykafka_broker.protocol.messages import read_share_group_state as reading
from pykafka_broker.protocol.messages import read_share_group_state_summary as summing
from pykafka_broker.protocol.messages import write_share_group_state as writing
from pykafka_broker.protocol.topic_partition import SharePartitionKey
from pykafka_broker.testing.clock import settle
from tests.support.other_brokers import Others
from tests.support.share_coordinator import KEY, PARTITIONS, TOPIC, Coordinator

HERE, THERE, ELSEWHERE = 0, 1, 2
OTHER_TOPIC = b"\x22" * 16
DONE = StateResult()
ACKED = StateBatch(0, 4, 1, 2)
NOT_COORDINATOR = Refusal(ErrorCode.NOT_COORDINATOR, "moved")


class Node:
    """A node with a share coordinator, and a persister that asks it and other brokers."""

    def __init__(self, coordinator: Coordinator, answer: Any = None) -> None:
        self.coordinator = coordinator
        self.clock = coordinator.clock
        self.others = Others(answer or told)
        #: The coordinator of each share partition.
        self.leaders: dict[SharePartitionKey, int] = {}
        #: That of all others.
        self.leader = HERE
        #: What becomes of it when the topic is created.
        self.leader_after_creation: int | None = None
        self.creations = 0
        timers = WallTimers(self.clock)
        self.persister = Persister(
            coordinator.service,
            RemoteStates(self.others, timers.now_ms),
            ShareMap(
                HERE,
                lambda key: self.leaders.get(key, self.leader),
                lambda topic_id: {TOPIC: 8}.get(topic_id, 0),
                self.create_topic,
            ),
            timers,
        )

    async def create_topic(self) -> bool:
        self.creations += 1
        if self.leader_after_creation is None:
            return False
        self.leader = self.leader_after_creation
        return True

    @classmethod
    async def serving(cls, answer: Any = None) -> Node:
        return cls(await Coordinator.serving(), answer)

    def write(
        self, key: SharePartitionKey = KEY, *batches: StateBatch, start_offset: int = 0
    ) -> Awaitable[Any]:
        return self.persister.write(
            key,
            state_epoch=1,
            leader_epoch=5,
            start_offset=start_offset,
            delivery_complete_count=0,
            batches=batches,
        )

    async def waited_for(self, answer: Awaitable[Any]) -> tuple[Any, int]:
        """An answer that takes pauses, and the seconds that it took."""
        asking = asyncio.ensure_future(answer)
        begun_ms = self.clock.now_ms()
        await settle()
        while not asking.done():
            await self.clock.pass_time(1_000)
        return await asking, (self.clock.now_ms() - begun_ms) // 1_000

    @property
    def asked(self) -> list[tuple[int, str]]:
        """The brokers that were asked, and for what."""
        return [(broker_id, type(request).__name__) for broker_id, request, _ in self.others.asked]


def told(request: Any, error: ErrorCode = ErrorCode.NONE, message: str | None = None) -> Any:
    """The answer of a broker that has written, or found, what it was asked about."""
    module = {
        initializing.InitializeShareGroupStateRequest: initializing,
        writing.WriteShareGroupStateRequest: writing,
        deleting.DeleteShareGroupStateRequest: deleting,
        reading.ReadShareGroupStateRequest: reading,
        summing.ReadShareGroupStateSummaryRequest: summing,
    }[type(request)]
    name = type(request).__name__.removesuffix("Request")
    result = getattr(module, name.replace("ShareGroupState", "State") + "Result")
    found: dict[str, Any] = {}
    if module is reading:
        found = {
            "state_epoch": 1,
            "start_offset": 3,
            "state_batches": [
                reading.StateBatch(first_offset=3, last_offset=9, delivery_state=2, delivery_count=1)
            ],
        }
    if module is summing:
        found = {"state_epoch": 1, "leader_epoch": 5, "start_offset": 3, "delivery_complete_count": 7}
    return getattr(module, name + "Response")(
        results=[
            result(
                topic_id=topic.topic_id,
                partitions=[
                    module.PartitionResult(
                        partition=each.partition, error_code=int(error), error_message=message, **found
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


# ---- the coordinator is this node ----


async def test_this_node_is_asked_without_a_request() -> None:
    node = await Node.serving()
    persister = node.persister
    assert await persister.initialize(KEY, state_epoch=1, start_offset=0) == DONE
    assert await persister.read(KEY, leader_epoch=5) == ReadResult(None, 1, 0, ())
    assert await node.write(KEY, ACKED) == DONE
    assert await persister.read(KEY, leader_epoch=5) == ReadResult(None, 1, 0, (ACKED,))
    assert await persister.read_summary(KEY) == SummaryResult(None, 1, 5, 0, 0)
    assert await persister.delete(KEY) == DONE
    assert await persister.read_summary(KEY) == SummaryResult(None, 0, 0, -1, -1)
    assert node.asked == []


async def test_what_the_coordinator_refuses_for_good_is_told_at_once() -> None:
    node = await Node.serving()
    refused = await node.write(KEY, ACKED)
    assert refused == StateResult(
        Refusal(
            ErrorCode.INVALID_REQUEST,
            "Error in write state RPC. Write operation on uninitialized share partition not allowed.",
        )
    )


async def test_a_partition_that_is_being_loaded_is_waited_for() -> None:
    coordinator = Coordinator()
    node = Node(coordinator)
    loading = [coordinator.shards.load(partition, [], leader_epoch=0) for partition in coordinator.logs]
    asking = asyncio.ensure_future(node.persister.initialize(KEY, state_epoch=1, start_offset=0))
    await settle()
    assert not asking.done()
    for each in loading:
        await each
    await settle()
    assert asking.done() and await asking == DONE


async def test_a_coordinator_that_does_not_know_its_topic_yet_is_asked_again() -> None:
    node = await Node.serving()
    node.coordinator.shards.set_partition_count(0)
    asking = asyncio.ensure_future(node.persister.initialize(KEY, state_epoch=1, start_offset=0))
    await node.clock.pass_time(1_999)
    assert not asking.done()
    node.coordinator.shards.set_partition_count(PARTITIONS)
    await node.clock.pass_time(1)
    assert asking.done() and await asking == DONE


async def test_a_topic_that_is_gone_is_asked_for_again_and_then_given_up() -> None:
    node = await Node.serving()
    key = SharePartitionKey("workers", OTHER_TOPIC, 0)
    answer, seconds = await node.waited_for(node.persister.initialize(key, state_epoch=1, start_offset=0))
    assert seconds == 2 + 4 + 8 + 16
    assert answer == StateResult(
        Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "Error in initialize state RPC. "
            "Exhausted max retries to complete initialize state RPC without success.",
        )
    )


# ---- nobody is the coordinator ----


async def test_the_topic_is_created_when_it_is_missed() -> None:
    node = await Node.serving()
    node.leader, node.leader_after_creation = NO_COORDINATOR, HERE
    assert await node.persister.initialize(KEY, state_epoch=1, start_offset=0) == DONE
    assert node.creations == 1


async def test_without_a_coordinator_it_is_looked_for_five_times() -> None:
    node = await Node.serving()
    node.leader = NO_COORDINATOR
    answer, seconds = await node.waited_for(node.persister.read_summary(KEY))
    assert answer == SummaryResult(
        Refusal(
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            "Error in find coordinator. Exhausted max retries to find coordinator without success.",
        )
    )
    assert (node.creations, seconds) == (5, 30)


async def test_a_coordinator_that_is_not_alive_is_none() -> None:
    node = await Node.serving()
    node.leader, node.others.dead = THERE, {THERE}
    asking = asyncio.ensure_future(node.write(KEY, ACKED))
    await node.clock.pass_time(1_000)
    assert node.asked == []
    node.others.dead = set()
    await node.clock.pass_time(1_000)
    assert asking.done() and await asking == DONE


async def test_a_coordinator_that_has_moved_is_asked_before_the_pause_is_over() -> None:
    node = await Node.serving()
    node.leader = NO_COORDINATOR
    asking = asyncio.ensure_future(node.persister.initialize(KEY, state_epoch=1, start_offset=0))
    await settle()
    for _ in range(2 * MAX_ATTEMPTS):  # News of other brokers are no attempts.
        node.persister.look_again()
        await settle()
    assert not asking.done()
    node.leader = HERE
    node.persister.look_again()
    await settle()
    assert asking.done() and await asking == DONE


# ---- the coordinator is another broker ----


async def test_another_broker_is_asked_with_a_request() -> None:
    node = await Node.serving()
    node.leader = THERE
    persister = node.persister
    assert await persister.initialize(KEY, state_epoch=1, start_offset=-1) == DONE
    assert await persister.read(KEY, leader_epoch=5) == ReadResult(None, 1, 3, (StateBatch(3, 9, 1, 2),))
    assert await node.write(KEY, ACKED, start_offset=3) == DONE
    assert await persister.read_summary(KEY) == SummaryResult(None, 1, 5, 3, 7)
    assert await persister.delete(KEY) == DONE
    assert [request for _, request, _ in node.others.asked] == [
        initializing.InitializeShareGroupStateRequest(
            group_id="workers",
            topics=[
                initializing.InitializeStateData(
                    topic_id=TOPIC,
                    partitions=[initializing.PartitionData(partition=0, state_epoch=1, start_offset=-1)],
                )
            ],
        ),
        reading.ReadShareGroupStateRequest(
            group_id="workers",
            topics=[
                reading.ReadStateData(
                    topic_id=TOPIC, partitions=[reading.PartitionData(partition=0, leader_epoch=5)]
                )
            ],
        ),
        writing.WriteShareGroupStateRequest(
            group_id="workers",
            topics=[
                writing.WriteStateData(
                    topic_id=TOPIC,
                    partitions=[
                        writing.PartitionData(
                            partition=0,
                            state_epoch=1,
                            leader_epoch=5,
                            start_offset=3,
                            delivery_complete_count=0,
                            state_batches=[
                                writing.StateBatch(
                                    first_offset=0, last_offset=4, delivery_state=2, delivery_count=1
                                )
                            ],
                        )
                    ],
                )
            ],
        ),
        summing.ReadShareGroupStateSummaryRequest(
            group_id="workers",
            topics=[
                summing.ReadStateSummaryData(
                    topic_id=TOPIC, partitions=[summing.PartitionData(partition=0, leader_epoch=-1)]
                )
            ],
        ),
        deleting.DeleteShareGroupStateRequest(
            group_id="workers",
            topics=[
                deleting.DeleteStateData(topic_id=TOPIC, partitions=[deleting.PartitionData(partition=0)])
            ],
        ),
    ]


async def test_what_comes_while_a_broker_is_asked_goes_into_one_request_for_each_group() -> None:
    node = await Node.serving()
    node.leader = THERE
    node.others.free.clear()
    keys = [SharePartitionKey("workers", TOPIC, partition) for partition in range(4)]
    others = [SharePartitionKey("others", TOPIC, 7), SharePartitionKey("workers", OTHER_TOPIC, 0)]
    asking = [asyncio.ensure_future(node.write(key)) for key in (*keys[:1], *keys[1:], *others)]
    await settle()
    first = len(node.others.asked)
    node.others.free.set()
    assert [await each for each in asking] == [DONE] * 6
    about = [
        (
            request.group_id,
            [(topic.topic_id, [each.partition for each in topic.partitions]) for topic in request.topics],
        )
        for _, request, _ in node.others.asked
    ]
    assert first == len(about) == 2
    assert about == [
        ("workers", [(TOPIC, [0, 1, 2, 3]), (OTHER_TOPIC, [0])]),
        ("others", [(TOPIC, [7])]),
    ]


async def test_kinds_of_questions_do_not_wait_for_each_other() -> None:
    node = await Node.serving()
    node.leader = THERE
    node.others.free.clear()
    asking = [
        asyncio.ensure_future(node.write(KEY)),
        asyncio.ensure_future(node.persister.read_summary(KEY)),
    ]
    await settle()
    assert node.asked == [
        (THERE, "WriteShareGroupStateRequest"),
        (THERE, "ReadShareGroupStateSummaryRequest"),
    ]
    node.others.free.set()
    assert [(await each).refusal for each in asking] == [None, None]


async def test_writes_of_one_share_partition_never_overtake_each_other() -> None:
    failures = [NOT_COORDINATOR]

    def answer(request: Any) -> Any:
        return told(request, *failures.pop()) if failures else told(request)

    node = await Node.serving(answer)
    node.leader = THERE
    first = asyncio.ensure_future(node.write(KEY, start_offset=1))
    await settle()
    second = asyncio.ensure_future(node.write(KEY, start_offset=2))
    await node.clock.pass_time(1_999)
    # The first one is to be asked again, and the second waits for it.
    assert len(node.others.asked) == 1
    await node.clock.pass_time(1)
    assert (await first, await second) == (DONE, DONE)
    offsets = [
        each.start_offset
        for _, request, _ in node.others.asked
        for topic in request.topics
        for each in topic.partitions
    ]
    assert offsets == [1, 1, 2]


async def test_a_caller_that_goes_away_lets_the_next_one_have_its_turn() -> None:
    node = await Node.serving()
    node.leader = THERE
    node.others.free.clear()
    first = asyncio.ensure_future(node.write(KEY, start_offset=1))
    second = asyncio.ensure_future(node.write(KEY, start_offset=2))
    third = asyncio.ensure_future(node.write(KEY, start_offset=3))
    await settle()
    first.cancel()
    second.cancel()
    node.others.free.set()
    await settle()
    assert await third == DONE
    assert len(node.others.asked) == 2
    assert not node.persister.questions_in_line


async def test_a_coordinator_that_moves_is_followed() -> None:
    node = await Node.serving(lambda request: told(request, *NOT_COORDINATOR))
    node.leader = THERE
    asking = asyncio.ensure_future(node.persister.initialize(KEY, state_epoch=1, start_offset=0))
    await node.clock.pass_time(1_999)
    assert not asking.done()
    node.leader = HERE
    await node.clock.pass_time(1)
    assert asking.done() and await asking == DONE
    assert node.asked == [(THERE, "InitializeShareGroupStateRequest")]


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (ConnectionError("reset"), ErrorCode.NETWORK_EXCEPTION),
        (TimeoutError("late"), ErrorCode.REQUEST_TIMED_OUT),
        (ProtocolError("noise"), ErrorCode.NETWORK_EXCEPTION),
    ],
)
async def test_a_broker_without_an_answer_is_asked_five_times(failure: Exception, error: ErrorCode) -> None:
    node = await Node.serving(lambda _: failure)
    node.leader = THERE
    answer, seconds = await node.waited_for(node.persister.delete(KEY))
    assert answer == StateResult(
        Refusal(
            error,
            "Error in delete state RPC. Exhausted max retries to complete delete state RPC without success.",
        )
    )
    assert (len(node.others.asked), seconds) == (5, 30)


@pytest.mark.parametrize(
    ("answer", "refusal"),
    [
        (
            KafkaError(ErrorCode.UNSUPPORTED_VERSION, "too old"),
            Refusal(ErrorCode.UNSUPPORTED_VERSION, "Error in read state RPC. too old"),
        ),
        (
            lambda request: told(request, ErrorCode.FENCED_LEADER_EPOCH, "older"),
            Refusal(ErrorCode.FENCED_LEADER_EPOCH, "Error in read state RPC. older"),
        ),
        (
            lambda request: told(request, ErrorCode.FENCED_LEADER_EPOCH),
            Refusal(
                ErrorCode.FENCED_LEADER_EPOCH,
                f"Error in read state RPC. {ErrorCode.FENCED_LEADER_EPOCH.message}",
            ),
        ),
        (
            reading.ReadShareGroupStateResponse(results=[]),
            Refusal(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                "Error in read state RPC. Failed to read state for share partition "
                "workers:EREREREREREREREREREREQ:0",
            ),
        ),
    ],
)
async def test_what_another_broker_refuses_for_good_is_told_at_once(answer: Any, refusal: Refusal) -> None:
    node = await Node.serving(answer if callable(answer) else lambda _: answer)
    node.leader = THERE
    assert await node.persister.read(KEY, leader_epoch=5) == ReadResult(refusal)


async def test_each_share_partition_has_the_coordinator_of_its_own_key() -> None:
    node = await Node.serving()
    keys = [SharePartitionKey("workers", TOPIC, partition) for partition in range(PARTITIONS)]
    node.leaders = {keys[1]: THERE, keys[2]: ELSEWHERE}
    answers = await asyncio.gather(
        *(node.persister.initialize(key, state_epoch=1, start_offset=0) for key in keys)
    )
    assert answers == [DONE] * 4
    assert sorted(node.asked) == [
        (THERE, "InitializeShareGroupStateRequest"),
        (ELSEWHERE, "InitializeShareGroupStateRequest"),
    ]


# ---- how often ----


def test_look_ups_and_requests_are_counted_apart() -> None:
    assert after_lookup(Attempts(0, 3)) == Again(Attempts(1, 3), 2_000)
    assert after_lookup(Attempts(3, 3)) == Again(Attempts(4, 3), 16_000)
    assert after_refusal(Attempts(4, 0), "read state", NOT_COORDINATOR) == Again(Attempts(0, 1), 2_000)
    assert after_refusal(Attempts(0, 2), "read state", NOT_COORDINATOR) == Again(Attempts(0, 3), 8_000)


@pytest.mark.parametrize("error", [error for error in ErrorCode if error])
def test_only_errors_that_pass_by_are_asked_about_again(error: ErrorCode) -> None:
    decision = after_refusal(Attempts(), "read state", Refusal(error, "why"))
    if error in PASSING:
        assert decision == Again(Attempts(0, 1), 2_000)
    else:
        assert decision == Refusal(error, "Error in read state RPC. why")
