"""The life of a broker, asked of a controller over files in memory, on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pykafka_broker.cluster.image import RegisteredEndpoint
from pykafka_broker.controller.channel import ControllerChannel
from pykafka_broker.controller.core.events import (
    BrokerHeartbeat,
    Event,
    HeartbeatResult,
    NewTopic,
    RegisterBroker,
    UnregisterBroker,
)
from pykafka_broker.log.disk.directories import LogDirs
from pykafka_broker.membership.core.heartbeats import LifeSettings, Phase
from pykafka_broker.membership.lifecycle import UNREGISTERED, BrokerIdentity, BrokerLifecycle, LifePorts
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.raft.format import random_uuid
from tests.support.metadata import Node, heartbeat_of

LISTENERS = {"PLAINTEXT": RegisteredEndpoint("localhost", 9092)}
MOVED = {"PLAINTEXT": RegisteredEndpoint("localhost", 9095)}


def new_life(
    node: Node,
    controller: ControllerChannel | None = None,
    *,
    paths: tuple[str, ...] = ("/data",),
    is_quorum_gone: Callable[[], bool] = lambda: False,
) -> BrokerLifecycle:
    """The life of a broker that has not registered yet."""
    dirs = LogDirs(node.files, list(paths))
    for log_dir in dirs.all:
        log_dir.directory_id = random_uuid()
    dirs.metadata.directory_id = node.directory_id

    def raise_if_final(_: KafkaError) -> None:
        if node.failures:
            raise node.failures[0]

    ports = LifePorts(
        node.clock,
        lambda: node.publisher.published_offset,
        node.failures.append,
        raise_if_final,
        is_quorum_gone,
    )
    return BrokerLifecycle(
        BrokerIdentity(1, node.image.cluster_id),
        controller or node.role,
        dirs,
        ports,
        LifeSettings(),
    )


async def registering(
    node: Node, broker: BrokerLifecycle, listeners: Mapping[str, RegisteredEndpoint] = LISTENERS
) -> None:
    """Let a broker register, while time passes."""
    task = asyncio.ensure_future(broker.register(listeners, rack=None, previous_broker_epoch=-1))
    while not task.done():
        await node.clock.pass_time(1)
    await task


async def running(node: Node, broker: BrokerLifecycle) -> BrokerLifecycle:
    """A broker that runs."""
    await registering(node, broker)
    await broker.unfence(())
    return broker


async def test_a_registration_that_is_asked_for_again_is_of_the_same_incarnation() -> None:
    node = Node()
    await node.replica.start()
    broker = new_life(node)
    await registering(node, broker)
    first = node.image.brokers[1]

    await registering(node, broker, MOVED)

    assert first.incarnation_id == broker.incarnation_id
    assert broker.broker_epoch == first.epoch
    assert node.image.brokers[1] == first._replace(listeners=MOVED, record_offset=first.record_offset + 1)


async def test_another_start_is_another_incarnation_with_another_epoch() -> None:
    node = Node()
    await node.replica.start()
    before, after = new_life(node), new_life(node)
    await registering(node, before)

    await registering(node, after)

    assert after.incarnation_id != before.incarnation_id
    assert after.broker_epoch > before.broker_epoch
    assert node.image.brokers[1].incarnation_id == after.incarnation_id


async def test_a_broker_is_fenced_until_it_is_ready() -> None:
    node = Node()
    await node.replica.start()
    broker = new_life(node)
    await registering(node, broker)
    assert (broker.phase, node.image.brokers[1].fenced) == (Phase.RECOVERY, True)
    await node.clock.pass_time(60_000)
    assert node.image.brokers[1].fenced

    await broker.unfence(())

    assert (broker.phase, node.image.brokers[1].fenced) == (Phase.RUNNING, False)


class Scripted:
    """A controller whose heartbeats are answered as the test says; an error stays until it is taken away."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.error: Exception | None = None
        self.statuses: list[BrokerHeartbeat] = []
        self.registrations = 0

    async def ask(self, event: Event, timeout_ms: int | None = None) -> Any:
        if isinstance(event, RegisterBroker):
            self.registrations += 1
            answer: Any = 7
        elif isinstance(event, BrokerHeartbeat):
            self.statuses.append(event)
            answer = HeartbeatResult(True, event.want_fence, False)
        else:
            raise AssertionError(event)
        if self.error is not None:
            raise self.error
        return answer


async def test_a_broker_whose_id_is_in_use_is_registered_when_the_other_is_gone() -> None:
    node = Node()
    controller = Scripted(node)
    controller.error = KafkaError(ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    broker = new_life(node, controller)
    registration = asyncio.ensure_future(broker.register(LISTENERS, rack=None, previous_broker_epoch=-1))
    await node.clock.pass_time(9_000)
    assert controller.registrations == 7  # after 100, 300, 700, 1500, 3100 and 6300 ms

    controller.error = None
    await node.clock.pass_time(9_000)

    await registration
    assert broker.broker_epoch == 7


async def test_a_broker_that_no_controller_answers_for_a_session_knows_it_until_one_does() -> None:
    node = Node()
    controller = Scripted(node)
    broker = await running(node, new_life(node, controller))
    controller.error = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    await node.clock.pass_time(8_000)
    silent_for_ms = [broker.silent_for_ms]
    await node.clock.pass_time(3_000)
    silent_for_ms.append(broker.silent_for_ms)

    controller.error = None
    await node.clock.pass_time(9_000)
    assert [*silent_for_ms, broker.silent_for_ms] == [None, 9_000, None]


async def test_a_broker_that_is_unregistered_while_it_runs_says_so_once_and_goes_on_asking(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its log repeated STALE_BROKER_EPOCH, and nothing said what had happened."""
    node = Node()
    await node.replica.start()
    broker = new_life(node)
    node.publisher.subscribe(lambda _, image: broker.published(image))
    await running(node, broker)
    caplog.clear()

    await node.role.ask(UnregisterBroker(1))
    await node.clock.pass_time(60_000)
    # Another broker comes: this one is still not there.
    await node.register(2)
    await node.clock.pass_time(60_000)

    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [("ERROR", UNREGISTERED)]
    assert broker.phase is Phase.RUNNING
    assert set(node.image.brokers) == {2}
    await broker.shut_down()


async def test_a_heartbeat_that_fails_in_any_way_is_followed_by_the_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = Node()
    controller = Scripted(node)
    broker = await running(node, new_life(node, controller))
    controller.error = ValueError("an answer that cannot be read")
    await node.clock.pass_time(8_000)
    assert [r.getMessage() for r in caplog.records if r.exc_info] == ["Unable to send HEARTBEAT"]

    controller.error = None
    await node.clock.pass_time(12_000)
    assert broker.silent_for_ms is None and broker.silence_ms < 9_000


async def test_the_time_since_a_controller_has_answered_is_known() -> None:
    node = Node()
    controller = Scripted(node)
    broker = await running(node, new_life(node, controller))
    controller.error = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    await node.clock.pass_time(35_000)
    assert broker.silence_ms == 35_000


async def test_a_broker_that_nobody_registers_gives_up() -> None:
    node = Node()
    controller = Scripted(node)
    controller.error = KafkaError(ErrorCode.NOT_CONTROLLER, "no leader")
    broker = new_life(node, controller)
    registration = asyncio.ensure_future(broker.register(LISTENERS, rack=None, previous_broker_epoch=-1))

    await node.clock.pass_time(60_000)

    with pytest.raises(KafkaError, match=r"Unable to register .*It answered: .*no leader"):
        await registration
    asked = controller.registrations
    await node.clock.pass_time(60_000)
    assert controller.registrations == asked
    await broker.shut_down()


async def test_a_failed_directory_is_told_until_it_is_noted() -> None:
    node = Node()
    controller = Scripted(node)
    broker = await running(node, new_life(node, controller, paths=("/data", "/more")))
    controller.error = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    failed = broker._dirs.all[1]  # what `report_failed` is given by the log manager

    broker.report_failed(failed)
    await node.clock.pass_time(20_000)
    controller.error = None
    await node.clock.pass_time(10_000)

    assert controller.statuses[-1].offline_directories == (failed.directory_id,)
    assert node.failures == []
    await broker.shut_down(is_controlled=False)


async def test_a_broker_stops_that_cannot_say_which_directory_has_failed() -> None:
    node = Node()
    controller = Scripted(node)
    broker = await running(node, new_life(node, controller, paths=("/data", "/more")))
    controller.error = KafkaError(ErrorCode.REQUEST_TIMED_OUT)

    broker.report_failed(broker._dirs.all[1])
    await node.clock.pass_time(30_000)

    [failure] = node.failures
    assert isinstance(failure, KafkaError)
    assert failure.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.phase is Phase.SHUTTING_DOWN
    await broker.shut_down()


class TwoBrokers:
    """Each leads a partition; both are registered with the controller of node 1."""

    async def start(self) -> None:
        self.node = Node()
        await self.node.replica.start()
        self.first = await running(self.node, new_life(self.node))
        self.second_epoch = await self.node.register(2)
        await heartbeat_of(self.node, 2, self.second_epoch)
        await self.node.create_topics(NewTopic("orders", num_partitions=2))

    def stop_first(self) -> asyncio.Future[None]:
        return asyncio.ensure_future(self.first.shut_down())


async def test_a_broker_stops_when_the_others_know_who_leads_now() -> None:
    brokers = TwoBrokers()
    await brokers.start()
    stop = brokers.stop_first()
    await brokers.node.clock.pass_time(5_000)
    assert not stop.done()

    await heartbeat_of(brokers.node, 2, brokers.second_epoch)
    await brokers.node.clock.pass_time(2_000)
    assert stop.done()
    assert stop.exception() is None
    assert brokers.node.image.brokers[1].fenced


async def test_a_broker_that_stops_does_not_wait_for_one_whose_session_is_over() -> None:
    brokers = TwoBrokers()
    await brokers.start()
    stop = brokers.stop_first()
    await brokers.node.clock.pass_time(8_900)
    assert not stop.done()

    await brokers.node.clock.pass_time(2_000)
    await stop
    assert [broker.fenced for broker in brokers.node.image.brokers.values()] == [True, True]


async def test_a_broker_that_stops_waits_five_minutes_for_one_that_does_not_catch_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    brokers = TwoBrokers()
    await brokers.start()
    behind = brokers.node.image.brokers[2].record_offset
    stop = brokers.stop_first()
    for _ in range(299):
        await brokers.node.clock.pass_time(1_000)
        await brokers.node.role.ask(BrokerHeartbeat(2, brokers.second_epoch, behind))
    assert not stop.done()

    await brokers.node.clock.pass_time(1_000)

    await stop
    assert "Timed out waiting for the controller to approve controlled shutdown" in caplog.text


async def test_a_broker_that_stops_without_a_controller_waits_for_the_length_of_a_session() -> None:
    node = Node()
    controller = Scripted(node)
    broker = await running(node, new_life(node, controller))
    controller.error = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    stop = asyncio.ensure_future(broker.shut_down())

    await node.clock.pass_time(8_999)
    assert not stop.done()
    await node.clock.pass_time(1)

    await stop


async def test_a_broker_that_stops_waits_for_no_controllers_that_have_ended(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = Node()
    controller, ended = Scripted(node), False
    broker = await running(node, new_life(node, controller, is_quorum_gone=lambda: ended))
    controller.error = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    stop = asyncio.ensure_future(broker.shut_down())
    await node.clock.pass_time(1_000)
    assert not stop.done()

    ended = True
    await node.clock.pass_time(100)

    await stop
    assert "too few of them are left" in caplog.text


async def test_a_broker_that_falls_silent_while_it_hands_over_looks_at_the_quorum_no_more() -> None:
    """It did so ten times a second until its event loop ended."""
    looks: list[int] = []

    def is_quorum_gone() -> bool:
        looks.append(1)
        return False

    node = Node()
    controller = Scripted(node)
    broker = await running(node, new_life(node, controller, is_quorum_gone=is_quorum_gone))
    controller.error = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    stop = asyncio.ensure_future(broker.shut_down())
    await node.clock.pass_time(1_000)
    assert looks and not stop.done()

    await broker.shut_down(is_controlled=False)
    await stop
    looks.clear()
    await node.clock.pass_time(1_000)
    assert not looks


async def test_a_node_that_cannot_go_on_waits_for_no_controller() -> None:
    node = Node()
    controller = Scripted(node)
    broker = new_life(node, controller)
    await registering(node, broker)
    controller.error = KafkaError(ErrorCode.NOT_CONTROLLER)
    node.failures.append(OSError("no space left on device"))

    with pytest.raises(OSError, match="no space left"):
        await broker.unfence(())
    await broker.shut_down()
