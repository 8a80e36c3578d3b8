"""Just deleted topics: each is unknown for a moment, within a minute, and only the newest are remembered."""

from __future__ import annotations

from pykafka_broker.cluster.deleted_topics import REMEMBERED_MS, REMEMBERED_TOPICS, UNKNOWN_MS, DeletedTopics


def test_a_deleted_topic_is_unknown_to_all_who_ask_at_the_moment_of_the_first() -> None:
    deleted = DeletedTopics()
    deleted.add(["orders"], 0)

    assert not deleted.is_unknown("clicks", 30)
    moments = (30, 31, 30 + UNKNOWN_MS - 1, 30 + UNKNOWN_MS)
    assert [deleted.is_unknown("orders", now_ms) for now_ms in moments] == [True, True, True, False]


def test_a_topic_that_is_deleted_again_is_unknown_again() -> None:
    deleted = DeletedTopics()
    deleted.add(["orders"], 0)
    assert deleted.is_unknown("orders", 1)
    deleted.add(["orders"], 200)

    assert deleted.is_unknown("orders", 250)


def test_who_is_asked_for_is_forgotten_before_who_was_deleted_earlier() -> None:
    deleted = DeletedTopics()
    deleted.add(["early"], 0)
    deleted.add(["late"], 1)
    assert deleted.is_unknown("late", 2)

    assert not deleted.is_unknown("late", 2 + UNKNOWN_MS)
    deleted.add([], 2 + UNKNOWN_MS)
    assert len(deleted) == 1
    assert deleted.is_unknown("early", 2 + UNKNOWN_MS)


def test_a_deletion_is_remembered_for_a_minute_from_the_last_one() -> None:
    deleted = DeletedTopics()
    deleted.add(["early", "twice"], 0)
    deleted.add(["twice"], 10)

    assert not deleted.is_unknown("early", REMEMBERED_MS)
    assert deleted.is_unknown("twice", REMEMBERED_MS + 9)
    deleted.add(["late"], REMEMBERED_MS + 10)
    assert not deleted.is_unknown("late", 2 * REMEMBERED_MS + 10)
    deleted.add([], 2 * REMEMBERED_MS + 10)
    assert len(deleted) == 0


def test_only_the_newest_deletions_are_remembered() -> None:
    deleted = DeletedTopics()
    deleted.add([f"topic-{number}" for number in range(REMEMBERED_TOPICS)], 0)
    deleted.add(["one", "more"], 1)

    assert len(deleted) == REMEMBERED_TOPICS
    assert [deleted.is_unknown(f"topic-{number}", 2) for number in range(3)] == [False, False, True]
    assert deleted.is_unknown("more", 2)
