"""The service: which shard serves a group, and what is answered while none does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, TypeVar

import pytest

from pykafka_broker.coordinator.groups.core import deletion, forgetting
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.events import (
    DescribedGroup,
    Event,
    FetchResult,
    JoinResult,
    LeaveResult,
    ListedGroup,
    PartitionCommit,
    SyncResult,
    TopicCommit,
    TopicPartitions,
)
from pykafka_broker.coordinator.groups.core.record import encode_record
from pykafka_broker.coordinator.groups.core.share.events import (
    DeleteShareOffsets,
    DescribeShareOffsets,
    ShareGroupHeartbeat,
    ShareGroupHeartbeatResult,
    ShareOffset,
)
from pykafka_broker.coordinator.groups.core.share.records import epoch_record, states_record
from pykafka_broker.coordinator.groups.core.share.state import NamedPartitions, StatePartitions
from pykafka_broker.coordinator.groups.core.topics import NO_TOPICS, TopicInfo, Topics
from pykafka_broker.coordinator.groups.service import GroupService
from pykafka_broker.coordinator.groups.share_work import ShareWorker
from pykafka_broker.coordinator.share.core.events import Refusal, StateResult
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import (
    BatchFields,
    build_batch,
    iter_batches,
    read_header,
    read_records,
)
from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.protocol.topic_partition import SharePartitionKey
from pykafka_broker.testing.clock import VirtualClock, settle
from tests.support.group_requests import GroupRequests
from tests.support.groups import subscription
from tests.support.share_states import ShareStatesInMemory

Result = TypeVar("Result")

PARTITIONS = 4
T, U = b"t" * 16, b"u" * 16
#: The first members of a group join at once.
WITHOUT_DELAY = GroupCoordinatorConfig(group_initial_rebalance_delay_ms=0)


async def run_at_once(function: Callable[[], Result]) -> Result:
    return function()


class Offsets:
    """A `__consumer_offsets` in memory with a service over it."""

    def __init__(
        self,
        config: GroupCoordinatorConfig = WITHOUT_DELAY,
        *,
        commits_at_once: bool = True,
        partitions: int = PARTITIONS,
    ) -> None:
        self.clock = VirtualClock()
        self.commits_at_once = commits_at_once
        self.disk_error: KafkaError | None = None
        self.logs: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
        self.ends = dict.fromkeys(self.logs, 0)
        self.batch_limit = 1 << 20
        self.uuids = 0
        #: Topics that no member may describe.
        self.hidden: set[str] = set()
        self.share_states = ShareStatesInMemory()
        #: Where partitions end.
        self.log_ends: dict[tuple[str, int], int] = {}
        self.service = GroupService(
            config,
            self,
            WallTimers(self.clock),
            new_uuid=self.new_uuid,
            run_blocking=run_at_once,
            describable=lambda principal, host, topics: [t for t in topics if t not in self.hidden],
            share_worker=ShareWorker(self.share_states, self.end_offsets, self.clock.now_ms),
        )
        self.shards = self.service.shards
        self.shards.set_partition_count(partitions)
        self.requests = GroupRequests(self.service)

    def max_batch_bytes(self, partition: int) -> int:
        return self.batch_limit

    def append(self, partition: int, batch: bytes, *, guard: int = 0, transaction_version: int = 0) -> int:
        if self.disk_error is not None:
            raise self.disk_error
        records = list(read_records(batch))
        self.logs[partition].append(
            build_batch(
                [(record.timestamp, record.key, record.value, ()) for record in records],
                BatchFields(base_offset=self.ends[partition]),
            )
        )
        self.ends[partition] += len(records)
        if self.commits_at_once:
            self.shards.on_high_watermark(partition, self.ends[partition])
        return self.ends[partition]

    def new_uuid(self) -> str:
        self.uuids += 1
        return str(self.uuids)

    async def end_offsets(
        self, partitions: Iterable[tuple[str, int]]
    ) -> dict[tuple[str, int], tuple[ErrorCode, int]]:
        return {
            place: (ErrorCode.NONE, self.log_ends[place])
            if place in self.log_ends
            else (ErrorCode.LEADER_NOT_AVAILABLE, -1)
            for place in partitions
        }

    async def load(self, partition: int, batches: Iterable[bytes] | AsyncIterator[bytes]) -> None:
        await self.shards.load(partition, batches, leader_epoch=0)

    async def load_all(self) -> None:
        for partition, log in self.logs.items():
            await self.load(partition, list(log))

    async def ask(self, group_id: str, event_with: Callable[[int], Event]) -> Any:
        return await self.service.answer(group_id, event_with, refused=lambda error: error.code)

    async def commit(self, offset: int, group_id: str = "g") -> ErrorCode:
        one = TopicCommit("t", (PartitionCommit(0, offset),))
        ((_, _, ((_, error),)),) = await self.requests.commit(one, group_id=group_id)
        return error

    async def fetch(self, group_id: str = "g") -> FetchResult:
        return await self.requests.fetch(group_id)

    async def fetched_offset(self, group_id: str = "g") -> int:
        ((_, _, (fetched,)),) = (await self.fetch(group_id)).topics
        return fetched.offset

    async def join(self, member_id: str = "", *, version: int = 9) -> JoinResult:
        return await self.requests.join(member_id, [("range", subscription("t"))], version=version)

    async def member(self) -> str:
        """The only member of a stable group in generation 1."""
        joining = asyncio.ensure_future(self.join(version=3))
        await self.clock.pass_time(0)
        joined = await joining
        await self.sync(joined.member_id)
        return joined.member_id

    async def sync(self, member_id: str) -> SyncResult:
        return await self.requests.sync(member_id, 1, [(member_id, b"mine")])


async def test_before_the_topic_exists_there_is_no_coordinator_and_there_are_no_groups() -> None:
    offsets = Offsets(partitions=0)
    wrong = ErrorCode.NOT_COORDINATOR

    await check_every_api_says(offsets, wrong, fetch=wrong, heartbeat=wrong, list_groups=ErrorCode.NONE)
    with pytest.raises(KafkaError):
        offsets.service.partition_for("g")


async def test_where_the_partition_is_not_led_it_is_the_wrong_coordinator() -> None:
    wrong = ErrorCode.NOT_COORDINATOR

    await check_every_api_says(Offsets(), wrong, fetch=wrong, heartbeat=wrong, list_groups=ErrorCode.NONE)


async def test_during_the_load_everything_waits_but_heartbeats_are_answered_well() -> None:
    offsets = Offsets()
    go_on = asyncio.Event()

    async def slow_log() -> AsyncIterator[bytes]:
        await go_on.wait()
        yield b""

    loading = asyncio.ensure_future(offsets.load(offsets.service.partition_for("g"), slow_log()))
    await settle()

    busy = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    await check_every_api_says(offsets, busy, fetch=busy, heartbeat=ErrorCode.NONE, list_groups=busy)
    go_on.set()
    await loading
    assert (await offsets.fetch()).error is ErrorCode.NONE


async def with_share_group() -> Offsets:
    """A share group without members that Apache Kafka has left: with states for partitions 0 and 1 of t."""
    offsets = Offsets()
    offsets.service.set_topics(
        Topics({"t": TopicInfo("t", T, 2), "u": TopicInfo("u", U, 2)}, 1),
        frozenset({"t", "u"}),
        has_new_topics=True,
    )
    states = StatePartitions(initialized={T: NamedPartitions("t", (0, 1))})
    records = [epoch_record("g", 4, 0), states_record("g", states, NO_TOPICS)]
    partition = offsets.service.partition_for("g")
    await offsets.load_all()
    await offsets.load(partition, [build_batch([(0, *encode_record(record), ()) for record in records])])
    offsets.share_states.start_offsets = {key(0): 5, key(1): 7}
    return offsets


def key(partition: int) -> SharePartitionKey:
    return SharePartitionKey("g", T, partition)


async def test_a_share_group_that_apache_kafka_left_goes_with_its_states() -> None:
    offsets = await with_share_group()
    assert await offsets.requests.list() == (ErrorCode.NONE, [ListedGroup("g", "share", "Empty", "share")])
    assert await offsets.requests.delete("g") is ErrorCode.NONE
    assert offsets.share_states.start_offsets == {}
    assert await offsets.requests.list() == (ErrorCode.NONE, [])


async def test_a_share_group_stays_while_its_states_cannot_be_deleted() -> None:
    offsets = await with_share_group()
    offsets.share_states.refused = {key(1): Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, "none")}
    assert await offsets.requests.delete("g") is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert offsets.share_states.start_offsets == {key(1): 7}
    offsets.share_states.refused = {}
    assert await offsets.requests.delete("g") is ErrorCode.NONE
    assert offsets.share_states.start_offsets == {}


async def test_a_member_gets_partitions_when_they_have_states() -> None:
    offsets = await with_share_group()

    async def beat(epoch: int, *topics: str) -> ShareGroupHeartbeatResult:
        answer = await offsets.ask(
            "g",
            lambda token: ShareGroupHeartbeat(
                token, offsets.service.now_ms(), "g", "m", epoch, "client", "/host", None, topics or None
            ),
        )
        assert isinstance(answer, ShareGroupHeartbeatResult)
        return answer

    joined = await beat(0, "u")
    assert joined.assignment == ()
    await settle()
    assert offsets.share_states.start_offsets == {
        key(0): 5,
        key(1): 7,
        SharePartitionKey("g", U, 0): -1,
        SharePartitionKey("g", U, 1): -1,
    }
    assert offsets.share_states.state_epochs[SharePartitionKey("g", U, 0)] == joined.member_epoch
    await offsets.clock.pass_time(1_000)
    assert (await beat(joined.member_epoch)).assignment == ((U, (0, 1)),)


async def test_where_a_share_group_starts_reading_is_described_with_its_lag() -> None:
    offsets = await with_share_group()
    offsets.log_ends = {("t", 0): 105}
    offsets.share_states.refused = {SharePartitionKey("g", U, 1): Refusal(ErrorCode.INVALID_REQUEST, "no")}
    not_led = ErrorCode.LEADER_NOT_AVAILABLE
    asked = (("t", (0, 1)), ("u", (0, 1, 0)))
    described = await offsets.ask("g", lambda token: DescribeShareOffsets(token, "g", asked))
    assert {name: told for name, _, told in described.topics} == {
        "t": (ShareOffset(0, 5, 0, 100), ShareOffset(1, 0, 0, -1, not_led, not_led.message)),
        "u": (ShareOffset(0), ShareOffset(1)),
    }


async def test_who_waits_for_states_to_be_deleted_is_told_when_the_log_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offsets = await with_share_group()

    async def lose_the_log(each: SharePartitionKey) -> StateResult:
        offsets.disk_error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        return StateResult()

    monkeypatch.setattr(offsets.share_states, "delete", lose_the_log)
    answer = await offsets.ask(
        "g", lambda token: DeleteShareOffsets(token, offsets.service.now_ms(), "g", ("t",))
    )
    assert answer is ErrorCode.NOT_COORDINATOR


async def check_every_api_says(
    offsets: Offsets, error: ErrorCode, *, fetch: ErrorCode, heartbeat: ErrorCode, list_groups: ErrorCode
) -> None:
    requests = offsets.requests
    assert await offsets.join("m") == JoinResult(error, "")
    assert await offsets.sync("m") == SyncResult(error)
    assert await requests.heartbeat("m", 1) is heartbeat
    assert await requests.leave("m") == LeaveResult(error)
    assert await offsets.commit(1) is error
    assert await offsets.fetch() == FetchResult(fetch)
    assert (await requests.delete_offsets(TopicPartitions("t", (0,)))).error is error
    assert await requests.list() == (list_groups, [])
    assert await requests.describe() == DescribedGroup(error, "g")
    assert await requests.delete() is error


async def test_a_member_goes_through_its_life() -> None:
    offsets = Offsets()
    await offsets.load_all()

    asked = await offsets.join()
    assert asked == JoinResult(ErrorCode.MEMBER_ID_REQUIRED, "client-1")
    joining = asyncio.ensure_future(offsets.join(asked.member_id))
    await offsets.clock.pass_time(0)
    assert (await joining).leader_id == "client-1"
    assert (await offsets.sync("client-1")).assignment == b"mine"
    assert await offsets.requests.heartbeat("client-1", 1) is ErrorCode.NONE
    left = await offsets.requests.leave("client-1")
    assert [error for _, error in left.members] == [ErrorCode.NONE]
    assert await offsets.requests.list("Empty") == (
        ErrorCode.NONE,
        [ListedGroup("g", "consumer", "Empty", "classic")],
    )


async def test_a_session_ends_by_the_clock() -> None:
    offsets = Offsets()
    await offsets.load_all()
    member = await offsets.member()

    await offsets.clock.pass_time(10_000)

    error = await offsets.requests.heartbeat(member, 1)
    assert error is ErrorCode.UNKNOWN_MEMBER_ID


async def test_groups_live_in_different_partitions_and_are_listed_together() -> None:
    offsets = Offsets()
    await offsets.load_all()

    for group_id in "abcdefgh":
        assert await offsets.commit(1, group_id) is ErrorCode.NONE

    assert sum(bool(log) for log in offsets.logs.values()) == PARTITIONS
    _, listed = await offsets.requests.list()
    assert sorted(group.group_id for group in listed) == list("abcdefgh")
    assert await offsets.requests.delete("a") is ErrorCode.NONE
    assert await offsets.requests.delete("a") is ErrorCode.GROUP_ID_NOT_FOUND


async def test_a_partition_that_moves_away_while_groups_are_listed_is_left_out() -> None:
    offsets = Offsets()
    await offsets.load_all()
    moving = offsets.service.partition_for("g")
    elsewhere = next(name for name in "abcdefgh" if offsets.service.partition_for(name) != moving)
    await offsets.commit(1, elsewhere)
    offsets.commits_at_once = False
    committing = asyncio.ensure_future(offsets.commit(1))
    listing = asyncio.ensure_future(offsets.requests.list())
    await settle()
    assert not listing.done()

    offsets.shards.unload(moving)

    assert await committing is ErrorCode.NOT_COORDINATOR
    assert await listing == (ErrorCode.NONE, [ListedGroup(elsewhere, "", "Empty", "classic")])


async def test_a_commit_is_answered_and_read_only_when_it_is_committed() -> None:
    offsets = Offsets(commits_at_once=False)
    await offsets.load_all()
    partition = offsets.service.partition_for("g")

    committing = asyncio.ensure_future(offsets.commit(5))
    fetching = asyncio.ensure_future(offsets.fetched_offset())
    await settle()
    assert not committing.done() and not fetching.done()
    offsets.shards.on_high_watermark(partition, 1)

    assert (await committing, await fetching) == (ErrorCode.NONE, 5)


@pytest.mark.parametrize("timeout_ms", [5_000, 800])
async def test_a_commit_that_is_not_replicated_in_time_is_to_be_retried(timeout_ms: int) -> None:
    offsets = Offsets(WITHOUT_DELAY._replace(offsets_commit_timeout_ms=timeout_ms), commits_at_once=False)
    await offsets.load_all()

    committing = asyncio.ensure_future(offsets.commit(5))
    fetching = asyncio.ensure_future(offsets.fetch())
    await offsets.clock.pass_time(timeout_ms - 1)
    assert not committing.done()
    await offsets.clock.pass_time(1)

    assert await committing is ErrorCode.COORDINATOR_NOT_AVAILABLE
    # Old consumers do not know that error here.
    assert (await fetching).error is ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize(
    ("from_the_log", "answered"),
    [
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.POLICY_VIOLATION, ErrorCode.POLICY_VIOLATION),
    ],
)
async def test_an_error_of_the_log_is_told_in_the_coordinators_words_and_nothing_is_stored(
    from_the_log: ErrorCode, answered: ErrorCode
) -> None:
    offsets = Offsets()
    await offsets.load_all()
    await offsets.commit(1)
    offsets.disk_error = KafkaError(from_the_log)

    assert await offsets.commit(2) is answered
    offsets.disk_error = None

    assert await offsets.fetched_offset() == 1


async def test_an_assignment_the_log_does_not_take_is_an_error_for_all_who_wait_and_they_join_again() -> None:
    offsets = Offsets()
    await offsets.load_all()
    joining = [asyncio.ensure_future(offsets.join(version=3)) for _ in range(2)]
    await offsets.clock.pass_time(0)
    leader, follower = [(await each).member_id for each in joining]
    waiting = asyncio.ensure_future(offsets.sync(follower))
    await settle()
    offsets.disk_error = KafkaError(ErrorCode.MESSAGE_TOO_LARGE)

    refused = await offsets.sync(leader)

    assert refused == await waiting == SyncResult(ErrorCode.UNKNOWN_SERVER_ERROR)
    again = ErrorCode.REBALANCE_IN_PROGRESS
    for member in (leader, follower):
        assert await offsets.requests.heartbeat(member, 1) is again
    described = await offsets.requests.describe()
    assert (described.state, [each.assignment for each in described.members]) == (
        "PreparingRebalance",
        [b"", b""],
    )
    await offsets.clock.pass_time(10_000)
    offsets.disk_error = None
    await offsets.clock.pass_time(1_000)
    described = await offsets.requests.describe()
    assert described.state == "Empty", "their sessions end as always"


async def test_a_partition_that_moves_away_sends_its_waiting_members_after_it() -> None:
    offsets = Offsets(GroupCoordinatorConfig(group_initial_rebalance_delay_ms=3_000))
    await offsets.load_all()
    joining = asyncio.ensure_future(offsets.join(version=3))
    await settle()

    offsets.shards.unload(offsets.service.partition_for("g"))

    assert await joining == JoinResult(ErrorCode.NOT_COORDINATOR, "")
    assert await offsets.commit(1) is ErrorCode.NOT_COORDINATOR


async def test_closing_unloads_everything() -> None:
    offsets = Offsets()
    await offsets.load_all()
    assert offsets.shards.loaded_partitions == frozenset(range(PARTITIONS))

    offsets.shards.close()

    assert offsets.shards.loaded_partitions == frozenset()
    assert offsets.clock.pending_timers == 0


async def test_a_restart_finds_the_offsets_and_the_members() -> None:
    offsets = Offsets()
    await offsets.load_all()
    member = await offsets.member()
    await offsets.commit(5, "other")

    await offsets.load_all()

    assert await offsets.fetched_offset("other") == 5
    assert await offsets.requests.heartbeat(member, 1) is ErrorCode.NONE
    assert (await offsets.sync(member)).assignment == b"mine"


async def test_what_was_loaded_but_not_committed_is_not_shown_yet() -> None:
    offsets = Offsets(commits_at_once=False)
    partition = offsets.service.partition_for("g")
    await offsets.load(partition, [])
    asyncio.ensure_future(offsets.commit(5)).add_done_callback(lambda done: done.result())
    await settle()

    await offsets.shards.load(partition, list(offsets.logs[partition]), leader_epoch=0, high_watermark=0)
    fetching = asyncio.ensure_future(offsets.fetched_offset())
    await settle()
    assert not fetching.done()
    offsets.shards.on_high_watermark(partition, 1)

    assert await fetching == 5


async def test_a_load_that_is_overtaken_by_an_unload_changes_nothing() -> None:
    offsets = Offsets()
    partition = offsets.service.partition_for("g")
    go_on = asyncio.Event()

    async def slow_log() -> AsyncIterator[bytes]:
        await go_on.wait()
        yield b""

    loading = asyncio.ensure_future(offsets.load(partition, slow_log()))
    await settle()
    offsets.shards.unload(partition)
    go_on.set()
    await loading

    assert offsets.shards.loaded_partitions == frozenset()


async def test_a_log_that_cannot_be_read_leaves_the_partition_unserved() -> None:
    offsets = Offsets()
    partition = offsets.service.partition_for("g")
    damaged = bytearray(build_batch([(0, b"\0\1\0\1g", b"", ())]))
    damaged[-1] ^= 1

    with pytest.raises(KafkaError):
        await offsets.load(partition, [bytes(damaged)])

    assert await offsets.commit(1) is ErrorCode.NOT_COORDINATOR


async def test_a_long_log_lets_others_run_in_between() -> None:
    offsets = Offsets()
    await offsets.load_all()
    for offset in range(200):
        await offsets.commit(offset)
    partition = offsets.service.partition_for("g")
    turns = 0

    async def bystander() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    watching = asyncio.ensure_future(bystander())
    await settle(1)
    before = turns
    await offsets.load(partition, offsets.logs[partition] * 50)
    watching.cancel()

    assert turns - before >= 4


async def test_offsets_of_deleted_topics_go_also_while_a_partition_loads() -> None:
    offsets = Offsets()
    await offsets.load_all()
    await offsets.commit(1, "a")
    await offsets.commit(1, "b")
    loading_partition = offsets.service.partition_for("a")
    log = list(offsets.logs[loading_partition])
    go_on = asyncio.Event()

    async def slow_log() -> AsyncIterator[bytes]:
        await go_on.wait()
        for batch in log:
            yield batch

    loading = asyncio.ensure_future(offsets.load(loading_partition, slow_log()))
    await settle()
    offsets.service.forget_topics([("t", bytes(16))])
    assert (await offsets.fetch("b")).topics == ()
    go_on.set()
    await loading

    assert (await offsets.fetch("a")).topics == ()


async def test_a_full_disk_does_not_make_the_deletion_of_a_topic_fail() -> None:
    offsets = Offsets()
    await offsets.load_all()
    await offsets.commit(1)
    offsets.disk_error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    offsets.service.forget_topics([("t", bytes(16))])

    assert await offsets.fetched_offset() == 1


async def test_an_expression_whose_topics_could_not_be_stored_is_resolved_by_a_later_heartbeat() -> None:
    offsets = Offsets()
    await offsets.load_all()
    topics = Topics({"t": TopicInfo("t", T, 1)}, 1)
    offsets.service.set_topics(topics, frozenset({"t"}), has_new_topics=True)

    joined = await offsets.requests.consumer_heartbeat("a", 0, regex="t.*")
    offsets.disk_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    await settle()
    offsets.disk_error = None
    await offsets.requests.consumer_heartbeat("a", joined.member_epoch)
    await settle()
    await offsets.clock.pass_time(offsets.service.config.consumer_group.assignment_interval_ms)

    told = await offsets.requests.consumer_heartbeat("a", joined.member_epoch)
    assert told.assignment == ((T, (0,)),)


async def test_a_deletion_that_meets_a_full_disk_is_answered_and_goes_on_when_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deletion, "OFFSETS_PER_SLICE", 2)
    offsets = Offsets()
    await offsets.load_all()
    twenty = (TopicCommit("t", tuple(PartitionCommit(partition, 1) for partition in range(20))),)
    await offsets.requests.commit(*twenty)

    deleting = asyncio.ensure_future(offsets.requests.delete("g"))
    await asyncio.sleep(0)
    fetching = asyncio.ensure_future(offsets.fetch())
    await asyncio.sleep(0)
    assert not deleting.done()
    offsets.disk_error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    await settle()
    assert deleting.done()
    assert fetching.done()
    assert (await deleting, await fetching) == (
        ErrorCode.NOT_COORDINATOR,
        FetchResult(ErrorCode.NOT_COORDINATOR),
    )

    fetching = asyncio.ensure_future(offsets.fetch())
    await settle()
    assert not fetching.done()
    offsets.disk_error = None
    await offsets.clock.pass_time(deletion.RETRY_MS)
    await settle()
    assert fetching.done()
    assert await fetching == FetchResult(ErrorCode.NONE)
    assert await offsets.requests.list() == (ErrorCode.NONE, [])


async def test_who_waits_for_a_deletion_looks_elsewhere_when_the_partition_moves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deletion, "OFFSETS_PER_SLICE", 2)
    offsets = Offsets()
    await offsets.load_all()
    five = (TopicCommit("t", tuple(PartitionCommit(partition, 1) for partition in range(5))),)
    await offsets.requests.commit(*five)

    deleting = asyncio.ensure_future(offsets.requests.delete("g"))
    await asyncio.sleep(0)
    joining = asyncio.ensure_future(offsets.join())
    await asyncio.sleep(0)
    offsets.shards.unload(offsets.service.partition_for("g"))
    assert await deleting is ErrorCode.NOT_COORDINATOR
    assert (await joining).error is ErrorCode.NOT_COORDINATOR


async def test_topics_that_go_are_forgotten_in_one_shard_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forgetting, "OFFSETS_AT_ONCE", 0)
    offsets = Offsets()
    await offsets.load_all()
    groups = {offsets.service.partition_for(name): name for name in map(str, range(20))}
    assert len(groups) == PARTITIONS
    for group_id in groups.values():
        await offsets.commit(1, group_id)
    before = dict(offsets.ends)

    offsets.service.forget_topics([("t", bytes(16))])
    written = []
    for _ in range(3 * PARTITIONS):
        await asyncio.sleep(0)
        written.append(sum(offsets.ends.values()) - sum(before.values()))

    steps = [later - earlier for earlier, later in zip([0, *written], written, strict=False)]
    assert sorted(steps, reverse=True)[: PARTITIONS + 1] == [1] * PARTITIONS + [0]


async def test_very_many_deletions_are_spread_over_several_batches() -> None:
    offsets = Offsets()
    await offsets.load_all()
    long_name = "t" * 249
    topics = tuple(
        TopicCommit(f"{number:05}{long_name[5:]}", (PartitionCommit(0, 1),)) for number in range(4_000)
    )
    await offsets.requests.commit(*topics)
    offsets.batch_limit = 100_000

    assert await offsets.requests.delete("g") is ErrorCode.NONE

    written = offsets.logs[offsets.service.partition_for("g")]
    assert [read_header(batch).records_count for batch in written[:1]] == [4_000]
    assert len(written) == 1 + 4 * 3 + 1
    assert max(map(len, written[1:])) <= 100_000
    assert sum(header.records_count for batch in written[1:] for _, header in iter_batches(batch)) == 4_001


async def test_the_codec_of_the_records_is_configurable(monkeypatch: pytest.MonkeyPatch) -> None:
    offsets = Offsets(WITHOUT_DELAY._replace(offsets_topic_compression_codec=Codec.GZIP))
    batches: list[bytes] = []
    append = offsets.append

    def appending(partition: int, batch: bytes) -> int:
        batches.append(batch)
        return append(partition, batch)

    monkeypatch.setattr(offsets, "append", appending)
    await offsets.load_all()

    await offsets.commit(1)

    assert read_header(batches[0]).codec is Codec.GZIP


async def test_the_log_says_which_member_timed_out(caplog: pytest.LogCaptureFixture) -> None:
    offsets = Offsets()
    await offsets.load_all()
    member = await offsets.member()
    caplog.clear()

    with caplog.at_level("INFO", "kafka.coordinator.group.GroupMetadataManager"):
        await offsets.clock.pass_time(10_000)

    [line] = caplog.messages
    assert line.startswith(f"Group g: Member {member} (")
    assert (
        "timed out: it had sent no heartbeat for 10 s (session.timeout.ms=10000). The group is empty." in line
    )
