"""Just deleted topics: each is taken once, within a minute, and only the newest are remembered."""

from __future__ import annotations

from pykafka_broker.cluster.deleted_topics import REMEMBERED_MS, REMEMBERED_TOPICS, DeletedTopics


def test_a_deleted_topic_is_taken_once() -> None:
    deleted = DeletedTopics()
    deleted.add(["orders"], 0)

    assert [deleted.take(name, 1) for name in ("clicks", "orders", "orders")] == [False, True, False]


def test_a_topic_that_is_deleted_again_is_taken_again() -> None:
    deleted = DeletedTopics()
    deleted.add(["orders"], 0)
    assert deleted.take("orders", 1)
    deleted.add(["orders"], 2)

    assert deleted.take("orders", 3)


def test_a_deletion_is_remembered_for_a_minute_from_the_last_one() -> None:
    deleted = DeletedTopics()
    deleted.add(["early", "twice"], 0)
    deleted.add(["twice"], 10)

    assert not deleted.take("early", REMEMBERED_MS)
    assert deleted.take("twice", REMEMBERED_MS + 9)
    deleted.add(["late"], REMEMBERED_MS + 10)
    assert not deleted.take("late", 2 * REMEMBERED_MS + 10)
    assert len(deleted) == 0


def test_only_the_newest_deletions_are_remembered() -> None:
    deleted = DeletedTopics()
    deleted.add([f"topic-{number}" for number in range(REMEMBERED_TOPICS)], 0)
    deleted.add(["one", "more"], 1)

    assert len(deleted) == REMEMBERED_TOPICS
    assert [deleted.take(f"topic-{number}", 2) for number in range(3)] == [False, False, True]
    assert deleted.take("more", 2)
