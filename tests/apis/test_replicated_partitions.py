"""Partitions that other brokers hold too: what followers, and consumers of followers, are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from pykafka_broker.cluster.image import BrokerRegistration, ClusterImage, RegisteredEndpoint
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from pykafka_broker.protocol.messages.describe_producers import DescribeProducersRequest
from pykafka_broker.protocol.messages.describe_producers import TopicRequest as DescribedTopic
from pykafka_broker.protocol.messages.fetch import ReplicaState
from pykafka_broker.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from pykafka_broker.replication.awaited_followers import BRIEF_WAIT_MS
from pykafka_broker.replication.partition import Partition
from pykafka_broker.testing.home import Home, until
from pykafka_broker.testing.user import User
from tests.apis.asking import (
    batch,
    fetching_of,
    offsets_at,
    parked,
    partitions_of,
    producing_to,
    wanting,
)
from tests.support.replicas import know_brokers, led

LATEST = -1
SESSION_MS = 9_000
FOLLOWER = 7
FOLLOWER_EPOCH = 40


class Replicated:
    """Partition 0 of "t", led here or by broker 7, which follows else."""

    def __init__(self, home: Home, user: User, topic_id: bytes) -> None:
        self.node = home.broker.node
        self.here = self.node.foundation.node_id
        self.user = user
        self.topic_id = topic_id
        self.image: ClusterImage = self.node.image
        self.epoch = 0

    def change(
        self, *, leader: int | None = None, isr: tuple[int, ...] | None = None, name: str = "t"
    ) -> None:
        """Another state of the partition, in a new leader epoch if a leader is named."""
        topic = self.image.topics[name]
        now = topic.partitions[0]
        self.epoch += leader is not None
        partition = now._replace(
            replicas=(self.here, FOLLOWER),
            isr=isr or (self.here, FOLLOWER),
            leader=now.leader if leader is None else leader,
            leader_epoch=self.epoch,
            partition_epoch=now.partition_epoch + 1,
            directories=(),
        )
        topics = {**self.image.topics, name: topic._replace(partitions={0: partition})}
        self.image = self.image._replace(topics=topics)
        self.node.broker.replicas.apply(self.image)

    def delete(self) -> None:
        """No topic has the name any more, as far as the partitions know."""
        topics = {name: topic for name, topic in self.image.topics.items() if name != "t"}
        self.image = self.image._replace(topics=topics)
        self.node.broker.replicas.apply(self.image)

    def create_again(self, topic_id: bytes) -> None:
        """Another topic has the name now; this node leads its partition, and broker 7 is in sync."""
        topic = self.image.topics["t"]._replace(topic_id=topic_id)
        self.delete()
        self.image = self.image._replace(topics={**self.image.topics, "t": topic})
        self.node.broker.replicas.apply(self.image)
        self.register_follower()

    def register_follower(self) -> None:
        """Let the partition know broker 7."""
        broker = BrokerRegistration(
            FOLLOWER, FOLLOWER_EPOCH, bytes(16), {"PLAINTEXT": RegisteredEndpoint("h", 1)}, "b", fenced=False
        )
        known = {FOLLOWER: broker}
        partition = self.partition
        know_brokers(partition, lambda n: known.get(n) or self.image.brokers.get(n))

    async def open_session(self, offset: int, *, by: int = FOLLOWER) -> int:
        """The id of a new fetch session of the topic's id."""
        state = ReplicaState(replica_id=by, replica_epoch=FOLLOWER_EPOCH if by >= 0 else -1)
        request = fetching_of(wanting(self.topic_id, offset), session_epoch=0, replica_state=state)
        session_id: int = (await self.user.send(request, 17)).session_id
        return session_id

    @property
    def partition(self) -> Partition:
        partition = self.node.broker.replicas.hosted("t", 0)
        assert partition is not None
        return partition

    async def write(self, *values: bytes) -> None:
        answer = await self.user.send(producing_to("t", batch(*values), acks=1), 12)
        assert [partition.error_code for partition in partitions_of(answer)] == [0]

    async def fetch(
        self, offset: int, *, by: int = FOLLOWER, epoch: int = -1, wait_ms: int = 0, **details: Any
    ) -> Any:
        """The answer for the partition to a replica, to a tool (-2) or to a consumer (-1)."""
        state = ReplicaState(replica_id=by, replica_epoch=FOLLOWER_EPOCH if by >= 0 else -1)
        asked = wanting(self.topic_id, offset, leader_epoch=epoch)
        asked.partitions[0].log_start_offset = 0 if by >= 0 else -1
        request = fetching_of(asked, max_wait_ms=wait_ms, replica_state=state, **details)
        [answer] = partitions_of(await self.user.send(request, 17))
        return answer


@pytest.fixture
async def replicated(home: Home, user: User) -> Replicated:
    """Led here since epoch 0, with records 0 and 1."""
    topic_id = await user.create_topic("t")
    replicated = Replicated(home, user, topic_id)
    replicated.change()
    replicated.register_follower()
    await replicated.write(b"a", b"b")
    return replicated


async def test_a_follower_of_the_topic_before_commits_nothing_of_one_that_has_its_name_now(
    home: Home, user: User, another: User, replicated: Replicated
) -> None:
    session = {"session_id": await replicated.open_session(2), "session_epoch": 1}
    replicated.create_again(b"\x09" * 16)
    waiting = await parked(home, another.send(producing_to("t", batch(b"1", b"2")), 12))

    request = fetching_of(
        replica_state=ReplicaState(replica_id=FOLLOWER, replica_epoch=FOLLOWER_EPOCH), **session
    )
    [answer] = partitions_of(await user.send(request, 17))

    assert answer.error_code == ErrorCode.INCONSISTENT_TOPIC_ID
    assert replicated.partition.log.state.high_watermark == 0
    assert not waiting.done()
    replicated.change(leader=FOLLOWER)
    late = await waiting
    [refused] = partitions_of(late)
    assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    leader = replicated.here  # the metadata of this node tells no other yet
    assert (refused.current_leader.leader_id, late.node_endpoints[0].node_id) == (leader, leader)


async def test_a_batch_that_waits_for_a_file_is_refused_if_its_topic_is_created_again_meanwhile(
    another: User, replicated: Replicated
) -> None:
    replicated.change(leader=replicated.here)  # the new epoch has to be written down
    roller = replicated.partition.log.roller
    request = producing_to(replicated.topic_id, batch(b"c"), acks=1)
    waiting = asyncio.ensure_future(another.send(request, 13))
    await until(lambda: roller.makes_names)

    replicated.create_again(b"\x09" * 16)

    [refused] = partitions_of(await waiting)
    assert (refused.error_code, refused.base_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert replicated.partition.log.state.log_end_offset == 0


@pytest.mark.parametrize("by", [-1, -2, FOLLOWER])
async def test_the_topic_id_is_looked_at_before_the_leader_and_its_epoch(
    replicated: Replicated, by: int
) -> None:
    session_id = await replicated.open_session(2, by=by)
    replicated.create_again(b"\x09" * 16)
    replicated.change(leader=FOLLOWER)

    state = ReplicaState(replica_id=by, replica_epoch=FOLLOWER_EPOCH if by >= 0 else -1)
    request = fetching_of(replica_state=state, session_id=session_id, session_epoch=1)
    [answer] = partitions_of(await replicated.user.send(request, 17))

    assert answer.error_code == ErrorCode.INCONSISTENT_TOPIC_ID


async def test_a_leader_that_is_cut_off_names_no_leader_when_it_refuses_records(
    home: Home, user: User, replicated: Replicated, caplog: pytest.LogCaptureFixture
) -> None:
    await replicated.fetch(2)
    await home.clock.pass_time(SESSION_MS)
    for _ in range(3):
        replicated.node.broker.replicas.check_controller(SESSION_MS)
    assert [r.getMessage() for r in caplog.records if r.name == "kafka.server.ReplicaManager"] == [
        "The controller and at least one in-sync replica of 1 partition (t-0) are silent: refusing "
        "records with acks=all, and closing the connections of producers that send them: another broker may "
        "lead."
    ]
    answer = await user.send(producing_to("t", batch(b"c")), 12)
    [refused] = partitions_of(answer)
    assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (refused.current_leader, answer.node_endpoints) == (None, [])


async def test_a_leader_that_is_cut_off_parts_with_the_producers_that_it_refuses(
    home: Home, user: User, another: User, replicated: Replicated
) -> None:
    await replicated.fetch(2)
    await home.clock.pass_time(SESSION_MS)
    waiting = await parked(home, another.send(producing_to("t", batch(b"c")), 12))
    replicated.node.broker.replicas.check_controller(SESSION_MS)
    for answer in (await waiting, await user.send(producing_to("t", batch(b"d")), 9)):
        [refused] = partitions_of(answer)
        assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    for producer in (user, another):
        with pytest.raises(ConnectionError):
            await producer.metadata("t")


# --- followers ------------------------------------------------------------------------------------


async def test_the_leader_epoch_of_a_follower_is_looked_at_before_its_assignment(
    replicated: Replicated,
) -> None:
    replicated.change(leader=replicated.here)
    current = replicated.epoch
    assert (await replicated.fetch(0, epoch=current - 1)).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (await replicated.fetch(0, epoch=current + 1)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    strange = 99
    assert (await replicated.fetch(0, by=strange, epoch=0)).error_code == ErrorCode.FENCED_LEADER_EPOCH
    unknown = await replicated.fetch(0, by=strange, epoch=current)
    assert unknown.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert (await replicated.fetch(0, by=strange)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (await replicated.fetch(0, epoch=current)).error_code == 0


async def test_a_follower_that_asks_a_broker_which_leads_no_longer_learns_whose_epoch_is_newer(
    replicated: Replicated,
) -> None:
    replicated.change(leader=FOLLOWER)
    assert (await replicated.fetch(0, epoch=0)).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (await replicated.fetch(0, epoch=2)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert (await replicated.fetch(0, epoch=1)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_fetch_of_an_earlier_life_of_a_follower_is_refused(replicated: Replicated) -> None:
    partition = replicated.partition
    know_brokers(partition, lambda n: BrokerRegistration(n, FOLLOWER_EPOCH + 1, bytes(16), {}, fenced=False))
    assert (await replicated.fetch(2)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.log.state.high_watermark == 0


async def test_a_parked_follower_is_answered_as_soon_as_something_is_appended(
    home: Home, another: User, replicated: Replicated
) -> None:
    await replicated.fetch(2)
    assert replicated.partition.log.state.high_watermark == 2
    waiting = await parked(home, replicated.fetch(2, wait_ms=60_000))
    consumer = Replicated(home, await User.connect(home.broker.bootstrap_servers), replicated.topic_id)
    consuming = await parked(home, consumer.fetch(2, by=-1, wait_ms=60_000))

    answer = await another.send(producing_to("t", batch(b"c"), acks=1), 12)

    assert [partition.error_code for partition in partitions_of(answer)] == [0]
    assert len((await waiting).records) > 0
    assert not consuming.done(), "the record is not committed yet"
    assert (await replicated.fetch(3)).error_code == 0
    assert len((await consuming).records) > 0
    await consumer.user.close()


async def test_a_parked_follower_is_answered_soon_when_a_leadership_begins_that_it_has_to_find(
    home: Home, another: User, replicated: Replicated
) -> None:
    await another.create_topic("other")
    replicated.image = replicated.node.image
    replicated.change()
    replicated.change(name="other", leader=FOLLOWER)
    await replicated.fetch(2)
    waiting = await parked(home, replicated.fetch(2, wait_ms=60_000))
    consuming = await parked(
        home, Replicated(home, another, replicated.topic_id).fetch(2, by=-1, wait_ms=60_000)
    )

    replicated.change(name="other", leader=replicated.here)

    await home.clock.pass_time(BRIEF_WAIT_MS)
    assert (await waiting).error_code == 0
    assert not consuming.done()


class QuietSession:
    """A follower's session, which has waited in vain for the partition once: from then on it asks for it
    again without naming it.
    """

    WAIT_MS = 500

    def __init__(self, home: Home, replicated: Replicated) -> None:
        self.home = home
        self.replicated = replicated
        self.session_id = 0
        self.epoch = 0

    async def fetch(self, *wanted: Any) -> Any:
        state = ReplicaState(replica_id=FOLLOWER, replica_epoch=FOLLOWER_EPOCH)
        request = fetching_of(
            *wanted,
            max_wait_ms=self.WAIT_MS,
            session_id=self.session_id,
            session_epoch=self.epoch,
            replica_state=state,
        )
        answer = await self.replicated.user.send(request, 17)
        assert answer.error_code == 0
        self.session_id = answer.session_id
        self.epoch += 1
        return answer

    async def in_vain(self, *wanted: Any) -> None:
        """Nothing comes, and the answer names no partition."""
        waiting = await parked(self.home, self.fetch(*wanted))
        await self.home.clock.pass_time(self.WAIT_MS)
        assert partitions_of(await waiting) == []

    @property
    def heard_ms(self) -> int | None:
        """When the partition has heard of the follower."""
        leadership = led(self.replicated.partition).leadership
        assert leadership is not None
        return leadership.followers[FOLLOWER].fetched_ms

    @property
    def listeners(self) -> int:
        return len(self.replicated.partition.log.on_advance)


@pytest.fixture
async def quiet(home: Home, replicated: Replicated) -> QuietSession:
    session = QuietSession(home, replicated)
    await replicated.fetch(2)
    opening = await parked(home, session.fetch(wanting(replicated.topic_id, 2)))
    await home.clock.pass_time(session.WAIT_MS)
    assert len(partitions_of(await opening)) == 1
    await session.in_vain()
    assert session.listeners == 1
    return session


async def test_a_follower_is_heard_from_time_to_time_while_nothing_happens(quiet: QuietSession) -> None:
    heard = set()
    for _ in range(20):
        await quiet.in_vain()
        assert quiet.listeners == 1
        heard.add(quiet.heard_ms)
    # With the first fetch after 2,250 ms, a quarter of a session.
    assert len(heard) == 5


async def test_a_follower_of_quiet_partitions_gets_what_is_appended_at_once(
    quiet: QuietSession, another: User
) -> None:
    waiting = await parked(quiet.home, quiet.fetch())
    answer = await another.send(producing_to("t", batch(b"c"), acks=1), 12)
    assert [partition.error_code for partition in partitions_of(answer)] == [0]
    [told] = partitions_of(await waiting)
    assert len(told.records) > 0
    assert quiet.listeners == 1


async def test_what_is_no_reason_to_answer_at_once_is_told_when_the_time_is_up(quiet: QuietSession) -> None:
    waiting = await parked(quiet.home, quiet.fetch())
    led(quiet.replicated.partition).deletion.delete(1)
    await quiet.home.clock.pass_time(quiet.WAIT_MS - 1)
    assert not waiting.done()
    await quiet.home.clock.pass_time(1)
    [told] = partitions_of(await waiting)
    assert (told.log_start_offset, told.records) == (1, b"")


async def test_a_session_listens_once_to_a_partition_and_no_more_when_it_is_closed(
    quiet: QuietSession,
) -> None:
    await quiet.in_vain(wanting(quiet.replicated.topic_id, 2))
    await quiet.in_vain()
    assert quiet.listeners == 1
    quiet.epoch = -1
    waiting = await parked(quiet.home, quiet.fetch(wanting(quiet.replicated.topic_id, 2)))
    await quiet.home.clock.pass_time(quiet.WAIT_MS)
    await waiting
    assert quiet.listeners == 0


async def test_a_follower_of_quiet_partitions_learns_at_once_that_another_broker_leads(
    quiet: QuietSession,
) -> None:
    waiting = await parked(quiet.home, quiet.fetch())
    quiet.replicated.change(leader=FOLLOWER)
    [told] = partitions_of(await waiting)
    assert told.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert quiet.listeners == 0


async def test_parked_fetches_learn_at_once_that_another_broker_leads(
    home: Home, another: User, replicated: Replicated
) -> None:
    await replicated.fetch(2)
    following = await parked(home, replicated.fetch(2, epoch=0, wait_ms=60_000))
    consumer = Replicated(home, another, replicated.topic_id)
    consuming = await parked(home, consumer.fetch(2, by=-1, epoch=0, wait_ms=60_000))
    replicated.change(leader=FOLLOWER)
    assert (await following).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (await consuming).error_code == ErrorCode.FENCED_LEADER_EPOCH


async def test_a_throttled_follower_out_of_sync_gets_no_records_while_too_much_was_sent(
    home: Home, replicated: Replicated
) -> None:
    replicated.change(isr=(replicated.here,))
    partition = replicated.partition
    partition.configure(partition.log.state.config._replace(leader_replication_throttled_replicas=("*",)))
    replicated.node.broker.replicas.throttle(10)
    assert len((await replicated.fetch(0)).records) > 10
    held_back = await replicated.fetch(0)
    assert (held_back.error_code, held_back.records) == (0, b"")
    assert len((await replicated.fetch(0, by=-1)).records) > 0, "consumers are not followers"
    await home.pass_time(12_000)
    assert len((await replicated.fetch(0)).records) > 10


# --- consumers ------------------------------------------------------------------------------------


async def test_consumers_read_what_is_committed_from_a_follower_and_older_ones_ask_the_leader(
    replicated: Replicated, user: User
) -> None:
    await replicated.fetch(1)
    replicated.change(leader=FOLLOWER)
    state = replicated.partition.log.state
    assert (state.high_watermark, state.log_end_offset) == (1, 2)

    committed = await replicated.fetch(1, by=-1)
    assert (committed.error_code, committed.high_watermark, committed.records) == (0, 1, b"")
    assert (await replicated.fetch(2, by=-1)).error_code == 0
    assert (await replicated.fetch(3, by=-1)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (await replicated.fetch(1, by=-2)).records == b"", "a tool reads what is committed"
    [older] = partitions_of(await user.send(fetching_of(wanting("t")), 10))
    assert older.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_consumer_is_sent_to_the_follower_in_its_rack_if_the_broker_selects_by_rack(
    replicated: Replicated,
) -> None:
    await replicated.fetch(2)
    assert (await replicated.fetch(0, by=-1, rack_id="b")).preferred_read_replica == -1
    replicated.node.broker.ports.fetching.selects_by_rack = True

    sent_away = await replicated.fetch(0, by=-1, rack_id="b", wait_ms=60_000)

    assert (sent_away.preferred_read_replica, sent_away.error_code) == (FOLLOWER, 0)
    assert (sent_away.records, sent_away.high_watermark) == (b"", 2)
    for rack in ("", "elsewhere"):
        stays = await replicated.fetch(0, by=-1, rack_id=rack)
        assert (stays.preferred_read_replica, len(stays.records) > 0) == (-1, True)


# --- offsets --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "error"), [(4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)]
)
async def test_a_new_leader_tells_the_end_when_its_high_watermark_has_reached_its_epoch(
    replicated: Replicated, user: User, version: int, error: ErrorCode
) -> None:
    await replicated.fetch(1)
    replicated.change(leader=replicated.here)

    def answers(**details: Any) -> Iterator[Any]:
        for timestamp in (LATEST, 0, 10**15):
            request = offsets_at("t", timestamp)
            yield user.send(request, version)

    found = [partitions_of(await answer)[0] for answer in answers()]
    assert [(each.error_code, each.offset) for each in found] == [(error, -1), (0, 0), (error, -1)]
    as_replica = offsets_at("t", LATEST)
    as_replica.replica_id = FOLLOWER
    assert partitions_of(await user.send(as_replica, version))[0].offset == 2

    await replicated.fetch(2)
    found = [partitions_of(await answer)[0] for answer in answers()]
    assert [(each.error_code, each.offset) for each in found] == [(0, 2), (0, 0), (0, -1)]


async def test_only_a_tool_may_ask_a_follower_for_its_offsets(replicated: Replicated, user: User) -> None:
    replicated.change(leader=FOLLOWER)
    by_consumer, by_tool = offsets_at("t", LATEST), offsets_at("t", LATEST)
    by_tool.replica_id = -2
    fenced = offsets_at("t", LATEST, leader_epoch=0)
    answers = [partitions_of(await user.send(r, 11))[0] for r in (by_consumer, by_tool, fenced)]
    assert [(each.error_code, each.offset) for each in answers] == [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1),
        (0, 2),
        (ErrorCode.FENCED_LEADER_EPOCH, -1),
    ]


async def test_a_follower_describes_the_producers_of_its_replica(replicated: Replicated, user: User) -> None:
    await user.produce("t", b"v", acks=1, producer_id=7, producer_epoch=2, base_sequence=0)
    replicated.change(leader=FOLLOWER)

    topic = DescribedTopic(name="t", partition_indexes=[0])
    [answer] = partitions_of(await user.send(DescribeProducersRequest(topics=[topic]), 0))
    assert answer.error_code == 0
    assert [(one.producer_id, one.producer_epoch) for one in answer.active_producers] == [(7, 2)]


async def test_a_follower_that_is_asked_for_the_end_of_an_epoch_fences_first(
    replicated: Replicated, user: User
) -> None:
    replicated.change(leader=FOLLOWER)

    async def error(current_leader_epoch: int) -> int:
        asked = OffsetForLeaderPartition(
            partition=0, current_leader_epoch=current_leader_epoch, leader_epoch=0
        )
        topic = OffsetForLeaderTopic(topic="t", partitions=[asked])
        answer = await user.send(OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic]), 4)
        code: int = answer.topics[0].partitions[0].error_code
        return code

    assert [await error(epoch) for epoch in (0, 1, 2, -1)] == [
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ]


# --- deletion -------------------------------------------------------------------------------------


async def test_deleted_records_are_acknowledged_when_the_follower_has_deleted_them(
    home: Home, another: User, replicated: Replicated
) -> None:
    await replicated.fetch(2)
    asked = DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=1)])
    request = DeleteRecordsRequest(topics=[asked], timeout_ms=30_000)

    deleting = await parked(home, another.send(request, 2))
    assert replicated.partition.log.state.log_start_offset == 1
    state = ReplicaState(replica_id=FOLLOWER, replica_epoch=FOLLOWER_EPOCH)
    told = wanting(replicated.topic_id, 2)
    told.partitions[0].log_start_offset = 1
    await replicated.user.send(fetching_of(told, replica_state=state), 17)

    [answer] = partitions_of(await deleting)
    assert (answer.error_code, answer.low_watermark) == (0, 1)


async def test_records_of_a_topic_that_is_created_again_meanwhile_are_not_deleted(
    home: Home, another: User, replicated: Replicated
) -> None:
    await replicated.fetch(2)
    asked = DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=1)])
    deleting = await parked(home, another.send(DeleteRecordsRequest(topics=[asked], timeout_ms=30_000), 2))

    replicated.create_again(b"\x09" * 16)

    [answer] = partitions_of(await deleting)
    assert (answer.error_code, answer.low_watermark) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert replicated.partition.log.state.log_start_offset == 0


async def test_a_follower_that_does_not_delete_in_time_is_told_of(
    home: Home, another: User, replicated: Replicated
) -> None:
    await replicated.fetch(2)
    asked = DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=1)])
    deleting = await parked(home, another.send(DeleteRecordsRequest(topics=[asked], timeout_ms=1_000), 2))
    delayed = home.broker.node.broker.purgatory.deletions
    assert (delayed.operations, delayed.places) == (1, 1)
    await home.pass_time(1_000)
    [answer] = partitions_of(await asyncio.wait_for(deleting, 10))
    assert (answer.error_code, answer.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    assert (delayed.operations, delayed.places) == (0, 0)
