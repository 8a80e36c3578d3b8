"""Partitions without news cost a fetch nothing: they are planned once, and again when their logs have moved.

Counted is how many partitions are planned, by a parked fetch when it is woken and by the next one of its
session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

import pytest

from pykafka_broker.apis.fetching import plan as fetch_plan
from pykafka_broker.cluster.image import BrokerRegistration
from pykafka_broker.log.manager.disk_threads import DiskThreads
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import fetch as fetching
from pykafka_broker.protocol.messages import produce as producing
from pykafka_broker.replication.partition import Partition
from pykafka_broker.testing.home import PATIENCE_SECONDS, Home
from pykafka_broker.testing.user import User
from tests.apis.asking import batch, fetching_of, parked, partitions_of, wanting
from tests.support.replicas import know_brokers, led

PARTITIONS = 20
FOLLOWER = 7
FOLLOWER_EPOCH = 40
WAIT_MS = 500
#: The partitions of a follower hear of its fetches so often, while nothing else happens.
QUIET_MS = 2_250


class Plans:
    """Counts the partitions that are planned."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._count = 0
        plan = fetch_plan._read_partition

        def counted(*arguments: Any, **details: Any) -> Any:
            self._count += 1
            return plan(*arguments, **details)

        monkeypatch.setattr(fetch_plan, "_read_partition", counted)

    def taken(self) -> int:
        """How many since the last call."""
        count, self._count = self._count, 0
        return count


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Plans:
    return Plans(monkeypatch)


class FollowedTopic:
    """Topic "t", led here, and the session of its follower, broker 7."""

    def __init__(self, home: Home, user: User, topic_id: bytes) -> None:
        self.home = home
        self.node = home.broker.node
        self.here = self.node.foundation.node_id
        self.user = user
        self.topic_id = topic_id
        self.follower = BrokerRegistration(FOLLOWER, FOLLOWER_EPOCH, bytes(16), {}, fenced=False)
        self.session_id = self.session_epoch = self.partition_epoch = 0

    def partition(self, index: int) -> Partition:
        partition = self.node.broker.replicas.hosted("t", index)
        assert partition is not None
        return partition

    @property
    def partitions(self) -> Iterator[Partition]:
        return (self.partition(index) for index in range(PARTITIONS))

    def replicate(self, *, in_sync: bool = True, leader_epoch: int = 0) -> None:
        """Let the follower have all partitions."""
        image = self.node.image
        topic = image.topics["t"]
        self.partition_epoch += 1
        partitions = {
            index: each._replace(
                replicas=(self.here, FOLLOWER),
                isr=(self.here, FOLLOWER) if in_sync else (self.here,),
                leader_epoch=leader_epoch,
                partition_epoch=self.partition_epoch,
                directories=(),
            )
            for index, each in topic.partitions.items()
        }
        topics = {**image.topics, "t": topic._replace(partitions=partitions)}
        self.node.broker.replicas.apply(image._replace(topics=topics))
        for partition in self.partitions:
            know_brokers(partition, lambda n: self.follower if n == FOLLOWER else image.brokers.get(n))

    async def fetch(
        self, *wanted: Any, wait_ms: int = WAIT_MS, epoch: int | None = None, forget: Iterable[Any] = ()
    ) -> Any:
        """The next fetch of the session, which names these partitions."""
        request = fetching_of(
            *wanted,
            max_wait_ms=wait_ms,
            session_id=self.session_id,
            session_epoch=self.session_epoch if epoch is None else epoch,
            forgotten_topics_data=list(forget),
            replica_state=fetching.ReplicaState(replica_id=FOLLOWER, replica_epoch=FOLLOWER_EPOCH),
        )
        answer = await self.user.send(request, 17)
        assert answer.error_code == 0
        if epoch is None:
            self.session_id, self.session_epoch = answer.session_id, self.session_epoch + 1
        return answer

    def all_at(self, offset: int, leader_epoch: int = 0) -> list[Any]:
        return [
            wanting(self.topic_id, offset, index, leader_epoch=leader_epoch) for index in range(PARTITIONS)
        ]


def read(answer: Any) -> dict[int, int]:
    """How many bytes came of the partitions that are listed."""
    return {one.partition_index: len(one.records or b"") for one in partitions_of(answer)}


@pytest.fixture
async def followed(home: Home, user: User, another: User, plans: Plans) -> FollowedTopic:
    """Empty partitions in a session that has been asked for twice: the first fetch opens it."""
    topic = FollowedTopic(home, user, await another.create_topic("t", PARTITIONS))
    topic.replicate()
    await topic.fetch(*topic.all_at(0), wait_ms=0)
    await topic.fetch(wait_ms=0)
    assert plans.taken() == 2 * PARTITIONS
    return topic


async def append(user: User, *partitions: int, acks: int = 1) -> None:
    """One request with a record for each of these partitions."""
    data = [producing.PartitionProduceData(index=index, records=batch(b"v")) for index in partitions]
    topic = producing.TopicProduceData(name="t", partition_data=data)
    request = producing.ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=[topic])
    answer = await user.send(request, 12)
    assert [(one.index, one.error_code) for one in partitions_of(answer)] == [(n, 0) for n in partitions]


# --- a follower ---------------------------------------------------------------------------------------


async def test_a_record_costs_a_followers_session_its_own_partition_alone(
    home: Home, another: User, followed: FollowedTopic, plans: Plans
) -> None:
    """The woken fetch used to plan all partitions, and the next one of the session all of them again."""
    waiting = await parked(home, followed.fetch())
    assert plans.taken() == 0

    await append(another, 3)

    assert list(read(await waiting)) == [3]
    assert plans.taken() == 1
    waiting = await parked(home, followed.fetch(wanting(followed.topic_id, 1, 3, leader_epoch=0)))
    assert plans.taken() == 1
    assert followed.partition(3).log.state.high_watermark == 1
    await home.clock.pass_time(WAIT_MS)
    await waiting


async def test_the_files_of_a_new_topic_are_one_job_and_its_first_records_need_no_more(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One job for each file costs a busy broker a turn of its event loop for each."""
    jobs: list[set[str]] = []
    run_in = DiskThreads.run_in

    def noted(threads: DiskThreads, directory: str, job: Callable[[], Any]) -> Awaitable[Any]:
        def run() -> Any:
            before = len(home.files.calls)
            try:
                return job()
            finally:
                calls = home.files.calls[before:]
                jobs.append({path.split("/")[2] for _, path in calls if path.startswith("/data/t-")})

        return run_in(threads, directory, run)

    monkeypatch.setattr(DiskThreads, "run_in", noted)
    async with home.running() as user:
        await user.create_topic("t", PARTITIONS)
        await append(user, *range(PARTITIONS))
        assert [folders for folders in jobs if folders] == [{f"t-{index}" for index in range(PARTITIONS)}]


async def test_first_records_of_many_partitions_after_a_change_of_leader_wake_a_follower_once(
    home: Home, another: User, followed: FollowedTopic, plans: Plans
) -> None:
    """One partition's file was made after the other, and with each record the follower came for it."""
    followed.replicate(leader_epoch=1)
    await followed.fetch(*followed.all_at(0, leader_epoch=1), wait_ms=0)
    plans.taken()
    waiting = await parked(home, followed.fetch())

    await append(another, *range(PARTITIONS))

    sizes = read(await waiting)
    assert (list(sizes), all(sizes.values())) == (list(range(PARTITIONS)), True)
    assert plans.taken() == PARTITIONS


async def test_what_moves_between_two_fetches_is_planned_by_the_next(
    another: User, followed: FollowedTopic, plans: Plans
) -> None:
    await append(another, 5)
    assert list(read(await followed.fetch())) == [5]
    assert plans.taken() == 1
    await append(another, 11)
    # It asks for the same again: it had no use for the answer.
    assert list(read(await followed.fetch())) == [11, 5], "what was served goes to the end"
    assert plans.taken() == 2


async def test_a_follower_hears_of_the_high_watermark_that_its_own_fetch_has_moved(
    home: Home, another: User, followed: FollowedTopic
) -> None:
    await append(another, 3)
    await followed.fetch()
    waiting = await parked(home, followed.fetch(wanting(followed.topic_id, 1, 3, leader_epoch=0)))
    await home.clock.pass_time(WAIT_MS)
    [told] = partitions_of(await waiting)
    assert (told.partition_index, told.high_watermark, told.records) == (3, 1, b"")


async def test_a_partition_whose_high_watermark_was_told_costs_the_next_fetch_nothing(
    home: Home, another: User, followed: FollowedTopic, plans: Plans
) -> None:
    """It was planned and reported again, although nothing had changed."""
    await append(another, 3)
    await followed.fetch()
    waiting = await parked(home, followed.fetch(wanting(followed.topic_id, 1, 3, leader_epoch=0)))
    await append(another, 5)
    sizes = read(await waiting)
    assert (sorted(sizes), sizes[3]) == ([3, 5], 0)
    plans.taken()

    waiting = await parked(home, followed.fetch(wanting(followed.topic_id, 1, 5, leader_epoch=0)))
    assert plans.taken() == 1
    await append(another, 3)

    sizes = read(await waiting)
    assert (sorted(sizes), sizes[5]) == ([3, 5], 0)


async def test_a_fetch_that_has_moved_the_high_watermark_is_woken_by_the_next_record(
    home: Home, another: User, followed: FollowedTopic
) -> None:
    await append(another, 3)
    await followed.fetch()
    waiting = await parked(home, followed.fetch(wanting(followed.topic_id, 1, 3, leader_epoch=0)))

    await append(another, 3)

    assert list(read(await waiting)) == [3]


async def test_all_partitions_hear_of_their_follower_from_time_to_time(
    home: Home, followed: FollowedTopic, plans: Plans
) -> None:
    for _ in range(QUIET_MS // WAIT_MS + 1):
        waiting = await parked(home, followed.fetch())
        assert plans.taken() == 0
        await home.clock.pass_time(WAIT_MS)
        assert read(await waiting) == {}
    await followed.fetch(wait_ms=0)
    assert plans.taken() == PARTITIONS


@pytest.mark.parametrize("flush_messages", ["1", "9223372036854775807"])
async def test_a_parked_follower_is_woken_before_the_record_is_on_the_leaders_disk(
    home: Home, another: User, followed: FollowedTopic, flush_messages: str
) -> None:
    """With `flush.messages` it came for the record only when its wait was over."""
    partition = followed.partition(3)
    config = partition.log.state.config
    partition.configure(config._replace(flush_messages=int(flush_messages)))
    waiting = await parked(home, followed.fetch())
    await append(another, 3)
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert list(read(await waiting)) == [3]


async def test_a_follower_that_may_join_the_isr_joins_with_its_next_fetch(
    followed: FollowedTopic, plans: Plans
) -> None:
    """It was seen at its end while its broker was fenced, and asks for the same ever since."""
    followed.follower = followed.follower._replace(fenced=True)
    followed.replicate(in_sync=False)
    await followed.fetch(wait_ms=0)
    followed.follower = followed.follower._replace(fenced=False)
    plans.taken()
    led(followed.partition(3)).brokers_changed()

    await followed.fetch(wait_ms=0)

    assert plans.taken() == 1
    leadership = led(followed.partition(3)).leadership
    assert leadership is not None and FOLLOWER in leadership.isr.maximal


async def test_a_follower_that_may_join_the_isr_while_its_fetch_is_parked_joins_with_the_next(
    home: Home, followed: FollowedTopic, plans: Plans
) -> None:
    """The plan at the end of the wait settled the partition, and the follower joined after `QUIET_MS`."""
    followed.follower = followed.follower._replace(fenced=True)
    followed.replicate(in_sync=False)
    waiting = await parked(home, followed.fetch())
    followed.follower = followed.follower._replace(fenced=False)
    led(followed.partition(3)).brokers_changed()
    await home.clock.pass_time(WAIT_MS)
    assert read(await waiting) == {}
    plans.taken()

    await followed.fetch(wait_ms=0)

    assert plans.taken() == 1
    leadership = led(followed.partition(3)).leadership
    assert leadership is not None and FOLLOWER in leadership.isr.maximal


async def test_a_fetch_that_is_parked_while_its_session_is_closed_looks_for_itself(
    home: Home, another: User, followed: FollowedTopic
) -> None:
    waiting = await parked(home, followed.fetch())
    async with await User.connect(home.broker.bootstrap_servers) as anew:
        await FollowedTopic.fetch(_same_session(followed, anew), *followed.all_at(0), wait_ms=0, epoch=-1)
    assert not waiting.done()

    await append(another, 3)

    assert list(read(await waiting)) == [3]
    assert [partition.log.on_advance for partition in followed.partitions] == [[]] * PARTITIONS


def _same_session(followed: FollowedTopic, user: User) -> FollowedTopic:
    same = FollowedTopic(followed.home, user, followed.topic_id)
    same.session_id = followed.session_id
    return same


async def test_a_session_listens_no_more_to_what_it_forgets(
    home: Home, another: User, followed: FollowedTopic, plans: Plans
) -> None:
    forgotten = fetching.ForgottenTopic(topic_id=followed.topic_id, partitions=[3, 4])
    waiting = await parked(home, followed.fetch(forget=[forgotten]))
    listeners = [len(partition.log.on_advance) for partition in followed.partitions]
    assert listeners == [index not in (3, 4) for index in range(PARTITIONS)]
    await append(another, 3)
    assert not waiting.done()
    await append(another, 5)
    assert list(read(await waiting)) == [5]


async def test_a_follower_that_was_registered_again_is_heard_by_all_partitions_at_once(
    followed: FollowedTopic, plans: Plans
) -> None:
    followed.follower = followed.follower._replace(epoch=FOLLOWER_EPOCH + 1)
    state = fetching.ReplicaState(replica_id=FOLLOWER, replica_epoch=FOLLOWER_EPOCH + 1)
    request = fetching_of(
        session_id=followed.session_id, session_epoch=followed.session_epoch, replica_state=state
    )
    assert partitions_of(await followed.user.send(request, 17)) == []
    assert plans.taken() == PARTITIONS


# --- a consumer ---------------------------------------------------------------------------------------


async def test_a_woken_consumer_plans_what_has_moved_and_is_told_of_all_it_has_asked_for(
    home: Home, user: User, another: User, plans: Plans
) -> None:
    topic_id = await another.create_topic("t", PARTITIONS)
    await append(another, 4)
    everything = [wanting(topic_id, 1 if index == 4 else 0, index) for index in range(PARTITIONS)]
    waiting = await parked(home, user.send(fetching_of(*everything, max_wait_ms=WAIT_MS), 13))
    assert plans.taken() == PARTITIONS

    await append(another, 17)

    answer = await waiting
    assert plans.taken() == 1
    assert list(read(answer)) == list(range(PARTITIONS))
    high_watermarks = {one.partition_index: one.high_watermark for one in partitions_of(answer)}
    assert [n for n, offset in high_watermarks.items() if offset] == [4, 17]


async def test_what_does_not_fit_into_an_answer_is_not_settled(home: Home, user: User, another: User) -> None:
    """The first batch of all comes in any case: here that of partition 1, once partition 0 has none."""
    topic_id = await another.create_topic("t", 2)
    await append(another, 0, 1)
    wanted = [wanting(topic_id, 0, 0), wanting(topic_id, 0, 1, max_bytes=10)]
    size = len(batch(b"v"))
    waiting = await parked(home, user.send(fetching_of(*wanted, max_wait_ms=WAIT_MS, min_bytes=2 * size), 13))

    partition = home.broker.node.broker.replicas.led("t", 0)
    assert partition is not None
    partition.deletion.delete(1)

    answers = {
        one.partition_index: (one.error_code, len(one.records)) for one in partitions_of(await waiting)
    }
    assert answers == {0: (ErrorCode.OFFSET_OUT_OF_RANGE, 0), 1: (0, size)}


async def test_a_topic_that_is_deleted_while_a_fetch_waits_is_told_of_at_once(
    home: Home, another: User, followed: FollowedTopic
) -> None:
    waiting = await parked(home, followed.fetch())
    await another.delete_topic("t")
    errors = {one.error_code for one in partitions_of(await waiting)}
    assert errors <= {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER} and errors
