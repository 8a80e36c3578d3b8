"""Metadata (3): brokers, and who leads which partition."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.metadata import metadata
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import NO_ID, UNKNOWN_ID, ends, every

#: All that may be done with a topic, and with the cluster, as bits.
TOPIC_OPERATIONS, CLUSTER_OPERATIONS = 3576, 8096
NOT_ASKED = -(2**31)


def about(*names: str | None, create: bool = False, **flags: Any) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create, **flags)


def about_ids(*ids: bytes, name: str | None = None) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name, topic_id=topic_id) for topic_id in ids]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def found(answer: Any) -> list[tuple[str | None, int]]:
    return [(topic.name, topic.error_code) for topic in answer.topics]


@pytest.mark.parametrize("version", every(metadata))
async def test_a_topic_is_described_with_all_the_version_can_say(
    home: Home, user: User, version: int
) -> None:
    topic_id = await user.create_topic("orders", 2)

    answer = await user.send(about("orders", create=version < 4), version)

    host, port = home.broker.bootstrap_servers.split(":")
    assert answer.brokers == [MetadataResponseBroker(node_id=1, host=host, port=int(port))]
    assert answer.controller_id == (1 if version >= 1 else -1)
    assert answer.cluster_id == (home.broker.node.image.cluster_id if version >= 2 else None)
    assert answer.topics == [
        MetadataResponseTopic(
            error_code=0,
            name="orders",
            topic_id=topic_id if version >= 10 else NO_ID,
            partitions=[
                MetadataResponsePartition(
                    error_code=0,
                    partition_index=index,
                    leader_id=1,
                    leader_epoch=0 if version >= 7 else -1,
                    replica_nodes=[1],
                    isr_nodes=[1],
                )
                for index in (0, 1)
            ],
        )
    ]


async def test_no_list_means_all_topics_and_an_empty_list_none(user: User) -> None:
    await user.create_topic("a")
    await user.create_topic("b")

    for version in ends(metadata, since=1):
        everything = await user.send(MetadataRequest(topics=None), version)
        assert sorted(found(everything)) == [("a", 0), ("b", 0)]
        assert found(await user.send(MetadataRequest(topics=[]), version)) == []


async def test_version_0_has_no_null_so_an_empty_list_means_all(user: User) -> None:
    await user.create_topic("a")

    assert found(await user.send(MetadataRequest(topics=[]), 0)) == [("a", 0)]


@pytest.mark.parametrize("version", ends(metadata, since=4))
async def test_an_unknown_topic_is_named_with_an_error_beside_the_known_ones(
    user: User, version: int
) -> None:
    await user.create_topic("known")

    answer = await user.send(about("known", "unknown"), version)

    assert found(answer) == [("known", 0), ("unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


@pytest.mark.parametrize("name", ["", ".", "..", "two words", "x" * 250])
@pytest.mark.parametrize("version", ends(metadata))
async def test_what_cannot_be_a_name_is_not_created(user: User, version: int, name: str) -> None:
    answer = await user.send(about(name, create=True), version)

    assert found(answer) == [(name, ErrorCode.INVALID_TOPIC_EXCEPTION)]


@pytest.mark.parametrize("version", ends(metadata))
async def test_naming_an_unknown_topic_creates_it_and_the_answer_knows_its_leader(
    user: User, version: int
) -> None:
    [topic] = (await user.send(about("new", create=True), version)).topics

    assert (topic.error_code, [p.leader_id for p in topic.partitions]) == (0, [1])
    assert await user.produce("new", b"at once") == 0


async def test_a_topic_is_not_created_if_the_client_does_not_want_it(user: User) -> None:
    await user.send(about("new", create=False), 4)

    assert await user.topics() == {}


async def test_a_topic_is_not_created_if_the_broker_does_not_want_it(home: Home) -> None:
    home.overrides["auto.create.topics.enable"] = "false"
    async with home.running() as user:
        answer = await user.send(about("new", create=True), 4)

        assert found(answer) == [("new", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
        assert await user.topics() == {}


async def test_asking_for_all_topics_creates_none(user: User) -> None:
    await user.send(MetadataRequest(topics=None, allow_auto_topic_creation=True), 13)

    assert await user.topics() == {}


@pytest.mark.parametrize("version", [12, 13])
async def test_topics_are_found_by_id(user: User, version: int) -> None:
    orders = await user.create_topic("orders")

    answer = await user.send(about_ids(orders, UNKNOWN_ID), version)

    assert found(answer) == [(None, ErrorCode.UNKNOWN_TOPIC_ID), ("orders", 0)]
    assert [topic.topic_id for topic in answer.topics] == [UNKNOWN_ID, orders]


async def test_known_topics_come_before_unknown_ones(user: User) -> None:
    await user.create_topic("known")

    answer = await user.send(about("unknown", "known", "two words"), 13)

    assert found(answer) == [
        ("known", 0),
        ("unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("two words", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]


@pytest.mark.parametrize("version", [10, 11])
async def test_versions_that_carry_ids_without_using_them_refuse_them(user: User, version: int) -> None:
    orders = await user.create_topic("orders")

    for request in (about_ids(orders, name="orders"), about(None)):
        answer = await user.send(request, version)
        assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_REQUEST]
        assert (answer.brokers, answer.cluster_id, answer.controller_id) == ([], None, -1)


@pytest.mark.parametrize("version", [12, 13])
async def test_a_topic_without_name_and_id_spoils_the_request(user: User, version: int) -> None:
    answer = await user.send(about(None, "orders"), version)

    assert {topic.error_code for topic in answer.topics} == {ErrorCode.INVALID_REQUEST}
    assert answer.error_code == (ErrorCode.INVALID_REQUEST if version >= 13 else 0)


@pytest.mark.parametrize("version", ends(metadata, since=8))
async def test_allowed_operations_are_told_to_those_who_ask(user: User, version: int) -> None:
    await user.create_topic("orders")

    plain = await user.send(about("orders"), version)
    asked = await user.send(about("orders", "unknown", include_topic_authorized_operations=True), version)

    assert [topic.topic_authorized_operations for topic in plain.topics] == [NOT_ASKED]
    assert [topic.topic_authorized_operations for topic in asked.topics] == [TOPIC_OPERATIONS] * 2


@pytest.mark.parametrize("version", [8, 10])
async def test_operations_on_the_cluster_are_told_in_versions_8_to_10(user: User, version: int) -> None:
    asked = await user.send(about(include_cluster_authorized_operations=True), version)

    assert (await user.send(about(), version)).cluster_authorized_operations == NOT_ASKED
    assert asked.cluster_authorized_operations == CLUSTER_OPERATIONS


async def test_a_topic_named_twice_is_described_once(user: User) -> None:
    await user.create_topic("orders")

    assert found(await user.send(about("orders", "orders"), 13)) == [("orders", 0)]


async def test_the_offsets_topic_is_marked_as_internal(user: User) -> None:
    await user.find_coordinator("group")

    [topic] = (await user.metadata("__consumer_offsets")).topics
    assert (topic.error_code, topic.is_internal) == (0, True)
