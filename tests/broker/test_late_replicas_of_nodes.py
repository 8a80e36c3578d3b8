"""A replica that comes late: compacted, aborted and deleted stretches are in it as in its leader."""

from __future__ import annotations

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from pykafka_broker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from pykafka_broker.protocol.records.batch import iter_batches
from pykafka_broker.testing.home import until
from pykafka_broker.testing.user import User
from tests.apis.asking import fetching_of, partitions_of, wanting
from tests.apis.transacting import READ_COMMITTED, Producer
from tests.broker.test_isr_of_nodes import isr_is
from tests.broker.test_replication_of_nodes import QUICK_FETCHES, agree, create, log_of
from tests.support.clusters import Cluster

pytestmark = pytest.mark.acknowledged

SETTINGS = {
    **QUICK_FETCHES,
    "log.cleaner.backoff.ms": "100",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
COMPACTED = {
    "cleanup.policy": "compact,delete",
    "retention.ms": "-1",
    "internal.segment.bytes": "1000",
    "min.cleanable.dirty.ratio": "0.01",
}


async def test_compacted_aborted_and_deleted_stretches_are_copied_as_they_are() -> None:
    cluster = Cluster(1, brokers=1, overrides=SETTINGS)
    async with cluster.running(1):
        await create(cluster, "orders", [[1]], COMPACTED)
        async with cluster.user_of(1) as user:
            producer = await Producer.of(user)
            for number in range(40):
                await producer.write("orders", b"%d" % number + bytes(200))
                await producer.end(commit=number % 3 != 0)
            before = size_of(cluster, 1)
            await until(lambda: size_of(cluster, 1) < before // 2)
            # From here on nothing is cleaned: the replica would be by its own cleaner.
            await user.alter_topic("orders", min_cleanable_dirty_ratio="1.0")
            await until(lambda: not cluster.broker(1).node.logs.cleaner.is_at_work)
            for number in range(7):
                await producer.write("orders", b"%d" % number)
                await producer.end(commit=number % 2 == 0)
            deleted = log_of(cluster, 1).state.log_end_offset - 12
            await delete_records(user, deleted)

            await cluster.homes[2].new_broker().start()
            await reassign(user, 1, 2)
            await isr_is(cluster, 1, 1, 2)
            await agree(cluster, 1, 2)
            async with cluster.user_of(2) as beside:
                topic_id = log_of(cluster, 1).topic_id
                assert (found := await read(user, topic_id, deleted)) == await read(beside, topic_id, deleted)
                assert len(found[1]) == 3, "transactions that were aborted"
        assert log_of(cluster, 2).state.log_start_offset == deleted
        assert batches_of(cluster, 2) == [batch for batch in batches_of(cluster, 1) if batch[1] > deleted]


def size_of(cluster: Cluster, node_id: int) -> int:
    return sum(segment.size for segment in log_of(cluster, node_id).state.segments)


def batches_of(cluster: Cluster, node_id: int) -> list[tuple[int, int]]:
    """The first offset of each batch in the files, and the one after its last."""
    files, found = cluster.homes[node_id].files, []
    for segment in log_of(cluster, node_id).state.segments:
        data = bytes(files.read_file(segment.path + ".log"))[: segment.size]
        found += [(header.base_offset, header.next_offset) for _, header in iter_batches(data)]
    return found


async def read(user: User, topic_id: bytes, offset: int) -> tuple[bytes, list[tuple[int, int]]]:
    """The bytes of the committed part of the log from `offset` on, and the transactions to be left out."""
    data, aborted = b"", list[tuple[int, int]]()
    while True:
        request = fetching_of(wanting(topic_id, offset), isolation_level=READ_COMMITTED)
        [answer] = partitions_of(await user.send(request, 17))
        assert ErrorCode(answer.error_code) is ErrorCode.NONE
        found = bytes(answer.records or b"")
        for one in answer.aborted_transactions or ():
            if (one.producer_id, one.first_offset) not in aborted:
                aborted.append((one.producer_id, one.first_offset))
        if not found:
            return data, aborted
        data += found
        offset = [header.next_offset for _, header in iter_batches(found)][-1]


async def delete_records(user: User, before_offset: int) -> None:
    partition = DeleteRecordsPartition(partition_index=0, offset=before_offset)
    topic = DeleteRecordsTopic(name="orders", partitions=[partition])
    answer = await user.send(DeleteRecordsRequest(topics=[topic], timeout_ms=10_000), 2)
    assert ErrorCode(answer.topics[0].partitions[0].error_code) is ErrorCode.NONE


async def reassign(user: User, *replicas: int) -> None:
    wanted = ReassignablePartition(partition_index=0, replicas=list(replicas))
    topic = ReassignableTopic(name="orders", partitions=[wanted])
    answer = await user.send(AlterPartitionReassignmentsRequest(topics=[topic]), 1)
    assert ErrorCode(answer.responses[0].partitions[0].error_code) is ErrorCode.NONE
