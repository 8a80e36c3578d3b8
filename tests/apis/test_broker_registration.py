"""BrokerRegistration (62): brokers elsewhere introduce themselves on the listener of controllers."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.broker_registration import broker_registration
from pykafka_broker.cluster.image import FeatureRange, RegisteredEndpoint
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.broker_registration import (
    BrokerRegistrationResponse,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import every
from tests.support.controllers import DIRECTORY, FEATURES, INCARNATION, register, registration, unfenced


async def test_a_broker_gets_an_epoch_and_is_known_with_all_it_said_but_fenced(
    combined: Home, controllers: User
) -> None:
    epoch = await register(controllers, combined, rack="r1")

    known = combined.broker.node.image.brokers[2]
    assert (known.epoch, known.incarnation_id, known.rack) == (epoch, INCARNATION, "r1")
    assert (known.fenced, known.in_controlled_shutdown, known.directories) == (True, False, (DIRECTORY,))
    assert known.listeners == {"PLAINTEXT": RegisteredEndpoint("elsewhere", 9092, 0)}
    assert known.features == {name: FeatureRange(*levels) for name, levels in FEATURES.items()}


@pytest.mark.parametrize("version", every(broker_registration))
async def test_log_directories_are_told_since_version_2(
    combined: Home, controllers: User, version: int
) -> None:
    request = registration(cluster_id=combined.broker.node.image.cluster_id)

    answer = await controllers.send(request, version)

    if version < 2:
        assert answer.error_code == ErrorCode.INVALID_REGISTRATION
        assert 2 not in combined.broker.node.image.brokers
    else:
        assert answer.error_code == ErrorCode.NONE
        assert combined.broker.node.image.brokers[2].epoch == answer.broker_epoch


async def test_the_same_incarnation_keeps_its_epoch_and_another_is_refused_while_the_first_lives(
    combined: Home, controllers: User
) -> None:
    epoch = await unfenced(controllers, combined)
    cluster_id = combined.broker.node.image.cluster_id

    again = await controllers.send(registration(cluster_id=cluster_id, rack="r2"), 4)
    another = await controllers.send(registration(cluster_id=cluster_id, incarnation_id=b"\x09" * 16), 4)

    assert (again.error_code, again.broker_epoch) == (ErrorCode.NONE, epoch)
    assert another == BrokerRegistrationResponse(error_code=int(ErrorCode.DUPLICATE_BROKER_REGISTRATION))
    assert combined.broker.node.image.brokers[2].rack == "r2"


@pytest.mark.parametrize(
    ("details", "error"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [DIRECTORY, DIRECTORY]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [bytes(15) + b"\x01"]}, ErrorCode.INVALID_REGISTRATION),
        ({"features": []}, ErrorCode.INVALID_REGISTRATION),
        ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
    ],
)
async def test_a_registration_that_does_not_fit_is_refused(
    combined: Home, controllers: User, details: dict[str, Any], error: ErrorCode
) -> None:
    request = registration(**{"cluster_id": combined.broker.node.image.cluster_id, **details})

    assert await controllers.send(request, 4) == BrokerRegistrationResponse(error_code=int(error))
    assert 2 not in combined.broker.node.image.brokers
