"""Images made of committed batches: prepared for, published, watched, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.controller.core.events import NewTopic
from pykafka_broker.metadata.batch import MetadataBatch
from pykafka_broker.metadata.publisher import MetadataPublisher
from pykafka_broker.protocol.messages.records import metadata as m
from pykafka_broker.raft.core.log_view import SnapshotId
from pykafka_broker.testing.clock import settle
from tests.support.metadata import Node


async def test_a_subscriber_that_unsubscribes_hears_no_more() -> None:
    node = Node()
    await node.start()
    seen = []
    unsubscribe = node.publisher.subscribe(lambda old, new: seen.append(new))
    unsubscribe()
    await node.create_topics(NewTopic("orders"))
    assert seen == []


def topic(name: str, offset: int) -> MetadataBatch:
    """A committed batch that creates one topic."""
    record = m.TopicRecord(name=name, topic_id=name.encode().ljust(16))
    return MetadataBatch(offset, offset + 1, 1, (record,))


async def test_watchers_come_after_all_subscribers_and_are_told_how_far_it_goes() -> None:
    publisher = MetadataPublisher("c")
    order = []
    publisher.watch(lambda image, offset: order.append(("watcher", image.offset, offset)))
    publisher.subscribe(lambda old, new: order.append(("first", old.offset, new.offset)))
    publisher.subscribe(lambda old, new: order.append(("second", old.offset, new.offset)))
    publisher.commit(topic("a", 0))
    assert order == [("first", -1, 0), ("second", -1, 0), ("watcher", 0, 1)]


async def test_what_the_log_held_at_the_start_shows_with_the_first_commit() -> None:
    publisher = MetadataPublisher("c")
    seen = []
    publisher.subscribe(lambda old, new: seen.append(sorted(new.topics)))
    publisher.replay(topic("a", 0))
    publisher.replay(topic("b", 1))
    assert (seen, publisher.image, sorted(publisher.replayed_image.topics)) == (
        [],
        ClusterImage("c"),
        ["a", "b"],
    )
    publisher.commit(MetadataBatch(2, 5, 2))
    assert seen == [["a", "b"]]
    assert (publisher.image.offset, publisher.image.epoch, publisher.published_offset) == (4, 2, 5)


async def test_an_image_that_takes_long_to_prepare_for_lets_nothing_overtake_it() -> None:
    publisher = MetadataPublisher("c")
    gates = {"a": asyncio.Event(), "b": asyncio.Event()}
    prepared: list[str] = []

    async def prepare(name: str) -> None:
        await gates[name].wait()
        prepared.append(name)

    def preparer(image: ClusterImage) -> Awaitable[None] | None:
        newest = max(image.topics)
        return prepare(newest) if newest in gates else None

    publisher.prepare_with(preparer)
    for offset, name in enumerate("abc"):
        publisher.commit(topic(name, offset))
    assert sorted(publisher.replayed_image.topics) == ["a", "b", "c"], "a new leader goes on from all of it"
    await settle()
    assert publisher.published_offset == 0

    gates["a"].set()
    await publisher.published(1)
    assert (prepared, sorted(publisher.image.topics)) == (["a"], ["a"])

    gates["b"].set()
    await publisher.published(3)
    assert (prepared, sorted(publisher.image.topics)) == (["a", "b"], ["a", "b", "c"])


async def test_a_preparation_that_fails_is_logged_and_the_image_published(
    caplog: pytest.LogCaptureFixture,
) -> None:
    publisher = MetadataPublisher("c")

    async def fail() -> None:
        raise OSError("no room")

    publisher.prepare_with(lambda image: fail())
    publisher.commit(topic("a", 0))
    await publisher.published(1)
    assert sorted(publisher.image.topics) == ["a"]
    assert "could not be prepared in advance" in caplog.text


async def test_the_error_of_a_subscriber_is_logged_and_counted_and_keeps_the_image_from_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Before, those after it never heard of this image, and who waited for it was not answered."""
    publisher = MetadataPublisher("c")
    seen: list[object] = []

    def fails(old: ClusterImage, new: ClusterImage) -> None:
        raise ValueError("a value that it does not expect")

    publisher.subscribe(fails)
    publisher.subscribe(lambda old, new: seen.append(sorted(new.topics)))
    publisher.watch(lambda image, offset: seen.append(offset))
    publisher.commit(topic("a", 0))
    await publisher.published(1)
    assert (seen, publisher.apply_errors) == ([["a"], 1], 1)
    assert "Unhandled error publishing the new metadata image ending at 0 with publisher" in caplog.text


async def test_it_has_caught_up_when_all_is_published_that_the_quorum_has_committed() -> None:
    publisher = MetadataPublisher("c")
    prepared = asyncio.Event()

    async def prepare() -> None:
        await prepared.wait()

    publisher.prepare_with(lambda image: prepare() if "b" in image.topics else None)
    caught_up = asyncio.ensure_future(publisher.caught_up())

    publisher.commit(topic("a", 0))
    await settle()
    assert not caught_up.done(), "how far the quorum has committed is not known yet"

    publisher.commit(topic("b", 1))
    publisher.high_watermark_moved(2)
    await settle()
    assert not caught_up.done(), "the last of it is not published yet"

    prepared.set()
    await caught_up
    assert sorted(publisher.image.topics) == ["a", "b"]
    await publisher.caught_up()


async def test_those_who_wait_for_a_leader_are_told_that_the_log_failed() -> None:
    publisher = MetadataPublisher("c")
    waiting = asyncio.ensure_future(publisher.caught_up())
    await settle()
    publisher.fail(OSError("broken"))
    with pytest.raises(OSError, match="broken"):
        await waiting


async def test_those_who_wait_for_an_offset_are_told_that_the_log_failed() -> None:
    publisher = MetadataPublisher("c")
    waiting = asyncio.ensure_future(publisher.published(1))
    await settle()
    publisher.fail(OSError("broken"))
    with pytest.raises(OSError, match="broken"):
        await waiting


async def test_a_snapshot_replaces_everything_before_it() -> None:
    publisher = MetadataPublisher("c")
    publisher.commit(topic("old", 0))
    record = m.TopicRecord(name="new", topic_id=b"n" * 16)
    publisher.start_over(SnapshotId(10, 3), [record])
    assert sorted(publisher.image.topics) == ["old"], "until the next commit"
    publisher.commit(topic("newer", 10))
    assert sorted(publisher.image.topics) == ["new", "newer"]
    assert publisher.image.offset == 10
