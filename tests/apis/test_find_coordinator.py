"""FindCoordinator (10): which broker coordinates a group."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.find_coordinator import find_coordinator
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import every

VERSIONS = every(find_coordinator)
GROUP, TRANSACTION, SHARE = 0, 1, 2


def asking(version: int, *keys: str, key_type: int = GROUP) -> FindCoordinatorRequest:
    if version >= 4:
        return FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))
    return FindCoordinatorRequest(key=keys[0], key_type=key_type)


def found(home: Home, *keys: str) -> list[Coordinator]:
    host, port = home.broker.bootstrap_servers.split(":")
    return [
        Coordinator(key=key, node_id=1, host=host, port=int(port), error_code=0, error_message="")
        for key in keys
    ]


@pytest.mark.parametrize("version", [v for v in VERSIONS if v < 4])
async def test_one_group_is_answered_in_flat_fields(home: Home, user: User, version: int) -> None:
    [expected] = found(home, "g")

    assert await user.send(asking(version, "g"), version) == FindCoordinatorResponse(
        error_code=0,
        error_message="NONE" if version >= 1 else None,
        node_id=expected.node_id,
        host=expected.host,
        port=expected.port,
    )


@pytest.mark.parametrize("version", [v for v in VERSIONS if v >= 4])
async def test_many_groups_are_answered_one_by_one(home: Home, user: User, version: int) -> None:
    answer = await user.send(asking(version, "a", "b", ""), version)

    assert answer == FindCoordinatorResponse(coordinators=found(home, "a", "b", ""))


async def test_a_request_without_keys_is_answered_without_coordinators(user: User) -> None:
    assert (await user.send(asking(4), 4)).coordinators == []


async def test_looking_for_a_coordinator_creates_the_offsets_topic_and_waits_until_it_works(
    home: Home, user: User
) -> None:
    assert "__consumer_offsets" not in home.broker.node.image.topics

    await user.send(asking(4, "g"), 4)

    assert await user.try_to_commit("g", "missing", 1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert len(home.broker.node.image.topics["__consumer_offsets"].partitions) == 1


async def test_two_clients_that_look_at_once_make_one_topic(home: Home, user: User, another: User) -> None:
    user.write(asking(4, "g"), 4)
    second = await another.send(asking(4, "g"), 4)
    first = await user.read(10, 4)

    assert first == second == FindCoordinatorResponse(coordinators=found(home, "g"))


@pytest.mark.parametrize("version", [1, 3, 4, 6])
async def test_transactional_ids_have_a_coordinator_and_a_topic_of_their_own(
    home: Home, user: User, version: int
) -> None:
    answer = await user.send(asking(version, "payments", key_type=TRANSACTION), version)

    found: Any = answer.coordinators[0] if version >= 4 else answer
    assert (found.error_code, found.node_id) == (0, home.broker.node_id)
    topic = home.broker.node.image.topics["__transaction_state"]
    assert len(topic.partitions) == home.config()["transaction.state.log.num.partitions"]


async def test_a_share_partition_has_a_coordinator_and_a_topic_of_its_own(home: Home, user: User) -> None:
    keys = [f"work:ers:{'A' * 22}:{partition}" for partition in (0, "+1", "1")]
    answer = await user.send(asking(6, *keys, key_type=SHARE), 6)

    assert answer == FindCoordinatorResponse(coordinators=found(home, *keys))
    topic = home.broker.node.image.topics["__share_group_state"]
    assert len(topic.partitions) == home.config()["share.coordinator.state.topic.num.partitions"]
    configs = home.broker.node.image.configs[ResourceType.TOPIC, "__share_group_state"]
    assert configs == {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": "1",
        "retention.ms": "-1",
        "segment.bytes": "104857600",
    }


@pytest.mark.parametrize(
    "key", ["", "g", "g:0", f"g:{'A' * 22}", f":{'A' * 22}:0", f" :{'A' * 22}:0", "g:short:0", "g:::"]
)
async def test_what_names_no_share_partition_is_refused_by_itself(home: Home, user: User, key: str) -> None:
    right = f"g:{'A' * 22}:0"
    refused, answered = (await user.send(asking(6, key, right, key_type=SHARE), 6)).coordinators
    assert (refused.error_code, refused.key) == (ErrorCode.INVALID_REQUEST, key)
    assert [answered] == found(home, right)


async def test_share_coordinators_are_not_known_before_version_6(home: Home, user: User) -> None:
    answer = await user.send(asking(5, f"g:{'A' * 22}:0", key_type=SHARE), 5)
    assert answer.coordinators[0].error_code == ErrorCode.INVALID_REQUEST
    assert "__share_group_state" not in home.broker.node.image.topics


@pytest.mark.parametrize("key_type", [SHARE, 7, -1])
@pytest.mark.parametrize("version", [1, 3, 4, 6])
async def test_other_coordinators_are_not_here(user: User, version: int, key_type: int) -> None:
    answer = await user.send(asking(version, "key", key_type=key_type), version)

    refused: Any = answer.coordinators[0] if version >= 4 else answer
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert (refused.node_id, refused.host, refused.port) == (-1, "", -1)
