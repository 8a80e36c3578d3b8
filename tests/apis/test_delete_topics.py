"""DeleteTopics (20): by name, or by id."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.delete_topics import delete_topics
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import NO_ID, UNKNOWN_ID, ends, every


def by_name(version: int, *names: str, timeout_ms: int = 1_000) -> DeleteTopicsRequest:
    if version < 6:
        return DeleteTopicsRequest(topic_names=list(names), timeout_ms=timeout_ms)
    topics = [DeleteTopicState(name=name, topic_id=NO_ID) for name in names]
    return DeleteTopicsRequest(topics=topics, timeout_ms=timeout_ms)


def by_id(*ids: bytes, name: str | None = None) -> DeleteTopicsRequest:
    topics = [DeleteTopicState(name=name, topic_id=topic_id) for topic_id in ids]
    return DeleteTopicsRequest(topics=topics, timeout_ms=1_000)


async def errors(user: User, request: Any, version: int = 6) -> dict[str | None, int]:
    answer = await user.send(request, version)
    return {result.name: result.error_code for result in answer.responses}


@pytest.mark.parametrize("version", every(delete_topics))
async def test_a_deleted_topic_is_gone_when_that_is_answered(user: User, version: int) -> None:
    topic_id = await user.create_topic("t")
    await user.produce("t", b"v")

    [result] = (await user.send(by_name(version, "t"), version)).responses

    assert (result.name, result.error_code, result.error_message) == ("t", 0, None)
    assert result.topic_id == (topic_id if version >= 6 else NO_ID)
    assert await user.topics() == {}
    assert (await user.fetch("t")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_topic_created_again_is_another_one_and_empty(user: User) -> None:
    first = await user.create_topic("t")
    await user.produce("t", b"v")
    await user.delete_topic("t")

    assert await user.create_topic("t") != first
    assert await user.values("t") == []


async def test_a_topic_is_deleted_by_its_id(user: User) -> None:
    topic_id = await user.create_topic("t")

    assert await errors(user, by_id(topic_id)) == {"t": 0}
    assert await errors(user, by_id(topic_id)) == {None: ErrorCode.UNKNOWN_TOPIC_ID}


@pytest.mark.parametrize("version", ends(delete_topics))
async def test_one_topics_failure_does_not_touch_the_others(user: User, version: int) -> None:
    await user.create_topic("t")

    got = await errors(user, by_name(version, "missing", "t"), version)

    assert got == {"missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "t": 0}


async def test_a_topic_is_either_named_or_identified(user: User) -> None:
    topic_id = await user.create_topic("t")

    for request in (by_id(topic_id, name="t"), by_id(NO_ID)):
        [result] = (await user.send(request, 6)).responses
        assert result.error_code == ErrorCode.INVALID_REQUEST
    assert list(await user.topics()) == ["t"]


@pytest.mark.parametrize("version", ends(delete_topics))
async def test_a_topic_named_twice_stays(user: User, version: int) -> None:
    await user.create_topic("t")

    assert await errors(user, by_name(version, "t", "t"), version) == {"t": ErrorCode.INVALID_REQUEST}
    assert list(await user.topics()) == ["t"]


async def test_an_unknown_id_has_no_name(user: User) -> None:
    [result] = (await user.send(by_id(UNKNOWN_ID), 6)).responses

    assert (result.name, result.topic_id) == (None, UNKNOWN_ID)
    assert result.error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize(("version", "error"), [(1, 42), (2, 42), (3, 73), (6, 73)])
async def test_a_broker_may_be_told_to_delete_nothing(home: Home, version: int, error: int) -> None:
    home.overrides["delete.topic.enable"] = "false"
    async with home.running() as user:
        await user.create_topic("t")

        assert await errors(user, by_name(version, "t"), version) == {"t": error}
        assert list(await user.topics()) == ["t"]
