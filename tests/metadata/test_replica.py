"""The parts of a metadata replica together: start, stop, a broken disk."""

from __future__ import annotations

import errno

import pytest

from pykafka_broker.controller.core.events import (
    CreateTopicResult,
    NewTopic,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from tests.support.metadata import Node


async def test_after_close_nothing_is_begun() -> None:
    node = Node()
    await node.start()
    await node.close()
    assert await node.create_topics(NewTopic("orders")) == (
        CreateTopicResult("orders", ErrorCode.NOT_CONTROLLER, "The controller is shutting down."),
    )


async def test_a_disk_that_fails_answers_all_who_wait_and_tells_the_node() -> None:
    node = Node()
    await node.start()
    node.files.fail("sync", errno.EIO, path=".log")

    [result] = await node.create_topics(NewTopic("orders"))

    assert result.error is ErrorCode.KAFKA_STORAGE_ERROR
    assert len(node.failures) == 1
    assert not node.image.topics


async def test_a_disk_that_fails_at_the_start_stops_the_start() -> None:
    node = Node()
    node.files.fail("sync", errno.EIO, path=".log")
    with pytest.raises(KafkaError):
        await node.replica.start()
