"""`with Broker(...)`: a broker in a thread of its own, started and stopped in order."""

from __future__ import annotations

import asyncio
import errno
import signal
import threading

import pytest

from pykafka_broker.broker.broker_thread import BrokerThread
from pykafka_broker.log.disk.directories import LogDirError
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User


def threads_of_brokers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("broker-")]


def test_a_program_without_an_event_loop_runs_a_broker_with_with() -> None:
    home = Home({"node.id": "7"})

    async def write(bootstrap_servers: str) -> int:
        async with await User.connect(bootstrap_servers) as user:
            await user.create_topic("orders")
            return await user.produce("orders", b"one")

    with home.new_broker() as broker:
        assert "broker-7-loop" in threads_of_brokers()
        assert asyncio.run(write(broker.bootstrap_servers)) == 0
    assert threads_of_brokers() == []


async def test_a_broker_runs_beside_the_event_loop_of_its_program() -> None:
    home = Home()
    with home.new_broker() as broker:
        async with await User.connect(broker.bootstrap_servers) as user:
            await user.create_topic("orders")
            await user.produce("orders", b"one")
    async with home.running() as user:
        assert await user.values("orders") == [b"one"]


def test_brokers_in_threads_run_side_by_side() -> None:
    with Home({"node.id": "1"}).new_broker() as one, Home({"node.id": "2"}).new_broker() as other:
        assert one.bootstrap_servers != other.bootstrap_servers
        assert {"broker-1-loop", "broker-2-loop"} <= set(threads_of_brokers())
    assert threads_of_brokers() == []


def test_what_keeps_a_broker_from_starting_is_raised_to_the_caller_and_leaves_no_thread() -> None:
    home = Home()
    with home.new_broker():
        other = Home({"node.id": "2"}, files=home.files)
        with pytest.raises(LogDirError, match="Failed to acquire lock"), other.new_broker():
            pytest.fail("the broker has started")
        assert [name for name in threads_of_brokers() if name.startswith("broker-2")] == []


def test_a_broker_starts_once_in_whatever_way() -> None:
    with Home().new_broker() as broker:
        pass
    with pytest.raises(RuntimeError, match="a broker starts once"), broker:
        pytest.fail("the broker has started again")


def test_a_running_broker_that_is_entered_again_refuses_and_goes_on() -> None:
    with Home().new_broker() as broker:
        with pytest.raises(RuntimeError, match="a broker starts once: make another one"), broker:
            pytest.fail("the broker has started again")
        asyncio.run(create_topic(broker.bootstrap_servers))
    assert threads_of_brokers() == []


def test_leaving_a_broker_that_was_not_entered_is_answered_with_a_sentence() -> None:
    broker = Home().new_broker()
    with pytest.raises(RuntimeError, match=r"this broker has not been started: .* start it"):
        broker.__exit__(None, None, None)
    with broker:
        assert threads_of_brokers() != []
    assert threads_of_brokers() == []


def test_the_address_of_a_stopped_broker_remains_for_the_one_that_takes_its_place() -> None:
    with Home().new_broker() as broker:
        address = broker.bootstrap_servers
    assert broker.bootstrap_servers == address
    with Home(listen=address).new_broker() as successor:
        assert successor.bootstrap_servers == address


async def create_topic(bootstrap_servers: str) -> None:
    async with await User.connect(bootstrap_servers) as user:
        await user.create_topic("orders")


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_in_the_block_stops_the_broker_in_order(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    home = Home()
    with pytest.raises(error), home.new_broker() as broker:
        asyncio.run(create_topic(broker.bootstrap_servers))
        raise error
    with caplog.at_level("INFO"), home.new_broker():
        assert "since clean shutdown file was found" in caplog.text


class InterruptedStart:
    """Its start never ends by itself, and Ctrl-C is pressed meanwhile."""

    def __init__(self) -> None:
        self.undone = False

    async def start(self) -> None:
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            self.undone = True

    async def stop(self) -> None:
        raise AssertionError("what has not started is not stopped")


def test_ctrl_c_during_the_start_undoes_it() -> None:
    broker = InterruptedStart()
    with pytest.raises(KeyboardInterrupt):
        BrokerThread(broker, "broker-1-loop").start()
    assert broker.undone
    assert threads_of_brokers() == []


class Quiet:
    """Starts and stops at once."""

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass


async def thread_name() -> str:
    return threading.current_thread().name


def test_calls_run_in_the_thread_of_the_broker_while_it_runs() -> None:
    thread = BrokerThread(Quiet(), "broker-1-loop")
    with pytest.raises(RuntimeError, match="has not been started"):
        thread.call(thread_name())
    thread.start()
    assert thread.call(thread_name()) == "broker-1-loop"
    with pytest.raises(TimeoutError):
        thread.call(asyncio.wait_for(asyncio.Event().wait(), 0.001))
    thread.stop()
    with pytest.raises(RuntimeError, match="has been stopped"):
        thread.call(thread_name())


def test_ctrl_c_during_a_call_cancels_it() -> None:
    cancelled = threading.Event()

    async def wait_for_ever() -> None:
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    thread = BrokerThread(Quiet(), "broker-1-loop")
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        thread.call(wait_for_ever())
    assert cancelled.wait(60)
    thread.stop()


class FailingStop:
    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        raise OSError(errno.EIO, "the disk is broken")


def test_what_a_stop_raises_is_raised_to_the_caller() -> None:
    thread = BrokerThread(FailingStop(), "broker-1-loop")
    thread.start()
    with pytest.raises(OSError, match="the disk is broken"):
        thread.stop()
    assert threads_of_brokers() == []
