"""Fetch sessions (KIP-227): what a reader asked for is remembered, and only news is answered."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.fetching.sessions import FetchSessionCache
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.fetch import ForgottenTopic
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import UNKNOWN_ID, Topic, fetching_of, parked, partitions_of, wanting

VERSIONS = [7, 12, 13, 18]
FULL, NONE = 0, -1


class Reader:
    """Keeps a session of one version going."""

    def __init__(self, user: User, version: int) -> None:
        self.user = user
        self.version = version
        self.session_id = 0
        self.epoch = FULL

    async def fetch(
        self, *wanted: Any, epoch: int | None = None, forget: list[tuple[Topic, int]] | None = None
    ) -> Any:
        """The next fetch of the session; keeps its id."""
        epoch = self.epoch if epoch is None else epoch
        forgotten = [
            ForgottenTopic(
                **({"topic": topic} if isinstance(topic, str) else {"topic_id": topic}),
                partitions=[partition],
            )
            for topic, partition in forget or ()
        ]
        answer = await self.user.send(
            fetching_of(
                *wanted, session_id=self.session_id, session_epoch=epoch, forgotten_topics_data=forgotten
            ),
            self.version,
        )
        if not answer.error_code:
            self.session_id = answer.session_id
            self.epoch = epoch + 1
        return answer

    async def news(self, *wanted: Any, **details: Any) -> list[tuple[int, int]]:
        """Partition and error of everything the next fetch lists."""
        answer = await self.fetch(*wanted, **details)
        assert answer.error_code == 0
        return [(partition.partition_index, partition.error_code) for partition in partitions_of(answer)]


@pytest.fixture(params=VERSIONS)
async def reader(user: User, request: pytest.FixtureRequest) -> Reader:
    return Reader(user, request.param)


async def topic_of(reader: Reader, partitions: int = 3) -> Topic:
    topic_id = await reader.user.create_topic("t", partitions)
    return topic_id if reader.version >= 13 else "t"


async def test_a_full_fetch_opens_a_session_and_lists_everything_even_if_there_is_nothing(
    reader: Reader,
) -> None:
    topic = await topic_of(reader)

    assert await reader.news(wanting(topic, 0, 0), wanting(topic, 0, 1)) == [(0, 0), (1, 0)]
    assert reader.session_id > 0


async def test_after_that_only_partitions_with_news_are_listed(reader: Reader) -> None:
    topic = await topic_of(reader)
    await reader.fetch(*(wanting(topic, 0, partition) for partition in range(3)))

    assert await reader.news() == []
    await reader.user.produce("t", b"v", partition=1)
    assert await reader.news() == [(1, 0)]
    assert await reader.news() == [(1, 0)], "it has not been read yet"
    assert await reader.news(wanting(topic, 1, 1)) == []


async def test_an_error_is_listed_until_it_is_over(reader: Reader) -> None:
    topic = await topic_of(reader)
    await reader.fetch(wanting(topic))

    out_of_range = [(0, int(ErrorCode.OFFSET_OUT_OF_RANGE))]
    assert await reader.news(wanting(topic, 99)) == out_of_range
    assert await reader.news() == out_of_range
    assert await reader.news(wanting(topic, 0)) == [(0, 0)]
    assert await reader.news() == []


async def test_partitions_come_and_go_in_a_session(reader: Reader) -> None:
    topic = await topic_of(reader)
    await reader.fetch(wanting(topic, 0, 0))

    assert await reader.news(wanting(topic, 0, 1)) == [(1, 0)]
    for partition in range(3):
        await reader.user.produce("t", b"v", partition=partition)
    assert await reader.news(forget=[(topic, 0)]) == [(1, 0)]


async def test_forgetting_the_last_partition_ends_the_session(reader: Reader) -> None:
    topic = await topic_of(reader)
    await reader.fetch(wanting(topic))

    assert (await reader.fetch(forget=[(topic, 0)])).session_id == 0


async def test_what_is_asked_for_and_forgotten_at_once_is_answered_when_nothing_else_is_left(
    reader: Reader,
) -> None:
    topic = await topic_of(reader)
    await reader.fetch(wanting(topic, 0, 0), wanting(topic, 0, 1))

    assert await reader.news(wanting(topic, 0, 1), forget=[(topic, 1)]) == []
    assert await reader.news(wanting(topic, 0, 0), forget=[(topic, 0)]) == [(0, 0)]
    assert reader.session_id == 0


async def test_an_epoch_that_is_not_the_next_one_is_refused_and_changes_nothing(reader: Reader) -> None:
    topic = await topic_of(reader)
    await reader.fetch(wanting(topic))

    for epoch in (2, 7):
        answer = await reader.fetch(epoch=epoch)
        assert answer.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        assert partitions_of(answer) == []
    assert await reader.news() == []


async def test_an_unknown_session_is_refused(reader: Reader) -> None:
    await topic_of(reader)
    reader.session_id = 4711

    assert (await reader.fetch(epoch=1)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_a_session_is_closed_by_a_fetch_without_one(reader: Reader) -> None:
    topic = await topic_of(reader)
    await reader.fetch(wanting(topic))
    session_id = reader.session_id

    assert (await reader.fetch(epoch=NONE)).session_id == 0

    reader.session_id = session_id
    assert (await reader.fetch(epoch=1)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_a_new_full_fetch_replaces_the_session(reader: Reader) -> None:
    topic = await topic_of(reader)
    await reader.fetch(wanting(topic))
    first = reader.session_id

    await reader.fetch(wanting(topic), epoch=FULL)

    assert reader.session_id != first
    assert await reader.news() == []


async def test_a_full_fetch_of_nothing_opens_a_session_too(reader: Reader) -> None:
    topic = await topic_of(reader)

    assert (await reader.fetch()).session_id > 0
    assert await reader.news(wanting(topic)) == [(0, 0)]


@pytest.mark.parametrize(("first", "second"), [(12, 13), (13, 12)])
async def test_names_and_ids_do_not_mix_in_a_session(user: User, first: int, second: int) -> None:
    reader = Reader(user, first)
    topic = await topic_of(reader)
    await reader.fetch(wanting(topic))

    reader.version = second
    answer = await reader.fetch()

    assert answer.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


async def test_a_topic_created_later_is_served_in_the_session_that_asked_for_it_by_name(user: User) -> None:
    reader = Reader(user, 12)

    assert await reader.news(wanting("t")) == [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    await user.create_topic("t")
    assert await reader.news() == [(0, 0)]


async def test_an_unknown_topic_id_keeps_being_an_error(user: User) -> None:
    reader = Reader(user, 13)

    for _ in range(2):
        assert await reader.news(*([wanting(UNKNOWN_ID)] if reader.epoch == FULL else [])) == [
            (0, ErrorCode.UNKNOWN_TOPIC_ID)
        ]


async def test_a_deleted_topic_is_an_error_in_the_session_that_remembers_its_name(reader: Reader) -> None:
    topic = await topic_of(reader)
    await reader.fetch(wanting(topic))

    await reader.user.delete_topic("t")

    assert await reader.news() == [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


async def test_a_session_of_ids_gets_nothing_of_another_topic_that_has_the_name_now(reader: Reader) -> None:
    user, topic = reader.user, await topic_of(reader)
    await user.produce("t", *[b"old"] * 4)
    await reader.fetch(wanting(topic, 4))
    await user.delete_topic("t")
    await user.create_topic("t")
    await user.produce("t", *[b"new"] * 10)

    by_id = [(0, int(ErrorCode.INCONSISTENT_TOPIC_ID))]
    for _ in range(2):
        assert await reader.news() == (by_id if reader.version >= 13 else [(0, 0)])


async def test_a_partition_that_was_served_goes_to_the_end_of_the_queue(user: User) -> None:
    reader = Reader(user, 12)
    await topic_of(reader)
    for partition in range(2):
        await user.produce("t", b"v" * 50, partition=partition)
    await reader.fetch()

    async def served(*wanted: Any) -> list[int]:
        request = fetching_of(*wanted, session_id=reader.session_id, session_epoch=reader.epoch, max_bytes=1)
        reader.epoch += 1
        answer = await user.send(request, 12)
        return [p.partition_index for p in partitions_of(answer) if p.records]

    assert await served(wanting("t", 0, 0), wanting("t", 0, 1)) == [0]
    assert await served() == [1]
    assert await served() == [0]


async def test_a_fetch_in_a_session_waits_like_any_other(home: Home, user: User, another: User) -> None:
    await user.create_topic("t")
    reader = Reader(user, 12)
    await reader.fetch(wanting("t"))
    request = fetching_of(max_wait_ms=500, session_id=reader.session_id, session_epoch=reader.epoch)
    waiting = await parked(home, user.send(request, 12))

    await another.produce("t", b"v")

    assert [partition.high_watermark for partition in partitions_of(await waiting)] == [1]


async def test_without_room_for_another_session_the_reader_goes_without(home: Home) -> None:
    home.overrides["max.incremental.fetch.session.cache.slots"] = "1"
    async with home.running() as user:
        first, second = Reader(user, 12), Reader(user, 12)
        await topic_of(first)

        await first.fetch(wanting("t"))
        await second.fetch(wanting("t"))

        assert (first.session_id > 0, second.session_id) == (True, 0)


async def test_a_session_unused_for_two_minutes_makes_room(home: Home) -> None:
    home.overrides["max.incremental.fetch.session.cache.slots"] = "1"
    async with home.running() as user:
        first, second = Reader(user, 12), Reader(user, 12)
        await topic_of(first)
        await first.fetch(wanting("t"))

        home.clock.set_wall_clock(-3_600_000)
        await home.clock.pass_time(120_001)
        await second.fetch(wanting("t"))

        assert second.session_id > 0
        assert (await first.fetch()).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


MINUTES_3_MS = 180_000


def opened(cache: FetchSessionCache, now_ms: int, partitions: int, *, is_of_follower: bool) -> int:
    """The id of the session that a full fetch of so many partitions gets; 0 for none."""
    request = fetching_of(*[wanting("t", 0, each) for each in range(partitions)], session_epoch=FULL)
    context = cache.begin(request, 12, now_ms, lambda topic_id: None)
    context.is_of_follower = is_of_follower
    return context.finish([])[1]


def test_a_follower_takes_the_place_of_a_consumer_and_never_loses_its_own_to_one() -> None:
    """Without a session, each of its fetches names and plans all of its partitions."""
    cache = FetchSessionCache(iter(range(1, 100)).__next__, max_entries=2)
    assert opened(cache, 0, 5, is_of_follower=False) == 1
    assert opened(cache, 0, 5, is_of_follower=False) == 2
    assert opened(cache, 0, 1, is_of_follower=True) == 3
    assert opened(cache, 0, 2, is_of_follower=True) == 4
    assert opened(cache, 0, 3, is_of_follower=True) == 0, "both have just begun"

    for session_id, epoch in ((3, 1), (4, 1)):
        request = fetching_of(session_id=session_id, session_epoch=epoch)
        cache.begin(request, 12, MINUTES_3_MS - 1, lambda topic_id: None)
    assert opened(cache, MINUTES_3_MS, 9, is_of_follower=False) == 0
    assert opened(cache, MINUTES_3_MS, 2, is_of_follower=True) == 5
    assert cache.partitions_of(3) == []


async def test_who_only_says_that_it_is_a_follower_takes_no_place(home: Home) -> None:
    home.overrides |= {
        "max.incremental.fetch.session.cache.slots": "1",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:nobody",
    }
    async with home.running() as user:
        first, second = Reader(user, 12), Reader(user, 12)
        await first.fetch(wanting("t"))
        request = fetching_of(wanting("t"), session_epoch=FULL, replica_id=2)
        answer = await user.send(request, second.version)

        assert (first.session_id > 0, answer.session_id) == (True, 0)
