"""BrokerHeartbeat (63): brokers elsewhere live, and move from state to state."""

from __future__ import annotations

import pytest

from pykafka_broker.apis.broker_heartbeat import broker_heartbeat
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.broker_heartbeat import BrokerHeartbeatResponse
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import every
from tests.support.controllers import DIRECTORY, heartbeat, register, unfenced


def state(*, caught_up: bool, fenced: bool, stops: bool = False) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(
        error_code=0, is_caught_up=caught_up, is_fenced=fenced, should_shut_down=stops
    )


@pytest.mark.parametrize("version", every(broker_heartbeat))
async def test_a_broker_is_unfenced_when_it_has_read_its_own_registration(
    combined: Home, controllers: User, version: int
) -> None:
    epoch = await register(controllers, combined)

    assert await controllers.send(heartbeat(epoch, epoch - 1), version) == state(caught_up=False, fenced=True)
    assert combined.broker.node.image.brokers[2].fenced

    assert await controllers.send(heartbeat(epoch, epoch), version) == state(caught_up=True, fenced=False)
    assert not combined.broker.node.image.brokers[2].fenced


async def test_a_broker_that_leads_nothing_may_stop_at_once(combined: Home, controllers: User) -> None:
    epoch = await unfenced(controllers, combined)

    answer = await controllers.send(heartbeat(epoch, epoch, want_shut_down=True), 2)

    assert answer == state(caught_up=True, fenced=True, stops=True)
    assert combined.broker.node.image.brokers[2].fenced


async def test_a_broker_that_stops_does_not_wait_for_the_broker_in_the_controllers_process(
    combined: Home, controllers: User
) -> None:
    epoch = await unfenced(controllers, combined)
    async with await User.connect(combined.broker.bootstrap_servers) as user:
        await user.create_topic("orders", partitions=4)
    leaders = [p.leader for p in combined.broker.node.image.topics["orders"].partitions.values()]
    assert 2 in leaders
    request = heartbeat(epoch, epoch, want_shut_down=True)

    first = await controllers.send(request, 2)
    # Its only replicas have nobody to lead them: the broker is to stay until they are gone.
    assert first == state(caught_up=True, fenced=False)

    offset = combined.broker.node.image.offset
    second = await controllers.send(heartbeat(epoch, offset, want_shut_down=True), 2)
    assert second == state(caught_up=True, fenced=True, stops=True)


async def test_failed_and_cordoned_directories_are_taken_up(combined: Home, controllers: User) -> None:
    another = b"\x03" * 16
    epoch = await register(controllers, combined, log_dirs=[DIRECTORY, another])

    await controllers.send(heartbeat(epoch, epoch, cordoned_log_dirs=[another]), 2)
    assert combined.broker.node.image.brokers[2].cordoned_directories == (another,)

    await controllers.send(heartbeat(epoch, epoch, offline_log_dirs=[another]), 1)
    assert combined.broker.node.image.brokers[2].directories == (DIRECTORY,)


@pytest.mark.parametrize("broker_id", [2, 3])
async def test_an_earlier_life_or_an_unknown_broker_is_refused(
    combined: Home, controllers: User, broker_id: int
) -> None:
    epoch = await register(controllers, combined)

    answer = await controllers.send(heartbeat(epoch + 1, epoch, broker_id), 2)

    assert answer == BrokerHeartbeatResponse(
        error_code=int(ErrorCode.STALE_BROKER_EPOCH), should_shut_down=False
    )
