"""One partition around a log: what it commits, refuses and acknowledges, as its leadership says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.rolling import NamesDue
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.replication.partition import Partition, PartitionPorts
from pykafka_broker.testing.clock import VirtualClock
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import NOW, TOPIC_ID, batch, new_log
from tests.replication.leading import LEADER, registration

ACKS_LEADER, ACKS_ALL = 1, -1


class Disk:
    """A disk whose syncs end when a test says so."""

    def __init__(self) -> None:
        self.syncs: list[tuple[asyncio.Future[Any], Callable[[], Any]]] = []

    def run(self, log: PartitionLog, job: Callable[[], Any]) -> asyncio.Future[Any]:
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.syncs.append((done, job))
        return done

    def sync(self) -> None:
        syncs, self.syncs = self.syncs, []
        for done, job in syncs:
            done.set_result(job())


def held(disk: Disk | None = None, **settings: Any) -> Partition:
    ports = PartitionPorts(LEADER, Disk() if disk is None else disk, VirtualClock())
    return Partition("orders", TOPIC_ID, 0, new_log(MemoryFiles(), **settings), ports)


def produce(partition: Partition, *values: bytes, acks: int = ACKS_ALL) -> int:
    """The offset after the batch; the file that notes its leader epoch is made before, as a broker does."""
    try:
        result = partition.append(batch(*values), required_acks=acks, produce_version=9, now_ms=NOW)
    except NamesDue as due:
        due.roller.make_names(due.base_offset)
        return produce(partition, *values, acks=acks)
    return result.last_offset + 1


async def turn() -> None:
    """Let the sync begin."""
    await asyncio.sleep(0)


async def test_without_followers_what_is_appended_is_committed_at_once() -> None:
    partition = held()
    partition.become(registration(1, replicas=(1,)))
    end = produce(partition, b"one", b"two")
    assert partition.log.state.high_watermark == end == 2
    assert partition.acknowledged(end) is None


async def test_what_an_earlier_process_left_is_committed_when_the_node_leads_alone() -> None:
    partition = held()
    partition.log.writer.append(batch(b"one"), leader_epoch=5, now_ms=NOW)
    assert partition.log.state.high_watermark == 0
    partition.become(registration(1, replicas=(1,)))
    assert partition.log.state.high_watermark == 1


async def test_a_replica_that_is_led_elsewhere_takes_no_batch_of_a_coordinator() -> None:
    partition = held()
    partition.become(registration(2, 1)._replace(leader=2))
    assert (partition.is_leader, partition.leader_epoch) == (False, 5)
    with pytest.raises(KafkaError) as refused:
        partition.append_internal(batch(b"state"), NOW)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_where_others_are_in_sync_nothing_is_committed_without_them() -> None:
    partition = held()
    partition.become(registration(1, 2))
    produce(partition, b"one", acks=ACKS_LEADER)
    assert (partition.log.state.log_end_offset, partition.log.state.high_watermark) == (1, 0)

    partition.become(registration(1, partition_epoch=8))  # the other has left the ISR

    assert partition.log.state.high_watermark == 1


async def test_with_too_few_replicas_in_sync_only_those_who_wait_for_all_are_refused() -> None:
    partition = held(min_insync_replicas=2)
    partition.become(registration(1))
    with pytest.raises(KafkaError) as refused:
        produce(partition, b"one")
    assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    with pytest.raises(KafkaError) as refused:
        partition.append_internal(batch(b"state"), NOW)
    assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert partition.log.state.log_end_offset == 0

    produce(partition, b"one", acks=ACKS_LEADER)
    assert partition.log.state.high_watermark == 0

    partition.configure(LogConfig(min_insync_replicas=1))
    assert partition.log.state.high_watermark == 1
    assert produce(partition, b"two") == partition.log.state.high_watermark == 2


async def test_a_topic_with_one_replica_cannot_ask_for_more() -> None:
    partition = held(min_insync_replicas=2)
    partition.become(registration(1, replicas=(1,)))
    assert produce(partition, b"one") == partition.log.state.high_watermark == 1


async def test_where_syncs_are_asked_for_batches_are_committed_and_acknowledged_after_them() -> None:
    disk = Disk()
    partition = held(disk, flush_messages=1)
    partition.become(registration(1, replicas=(1,)))
    waiting = [partition.acknowledged(produce(partition, value)) for value in (b"one", b"two")]
    await turn()
    assert partition.log.state.high_watermark == 0

    partition.become(registration(1, replicas=(1,), partition_epoch=8))
    assert partition.log.state.high_watermark == 0, "new metadata commits nothing that is not on disk"
    disk.sync()

    assert [await one for one in waiting if one is not None] == [ErrorCode.NONE, ErrorCode.NONE]
    assert partition.log.state.high_watermark == 2


async def test_brokers_that_are_not_assigned_may_not_follow() -> None:
    partition = held()
    partition.become(registration(1, replicas=(1, 2)))
    assert partition.limit_for_replica(2) == "log_end"
    with pytest.raises(KafkaError) as refused:
        partition.limit_for_replica(3)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
