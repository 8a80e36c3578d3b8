"""A transactional producer in few words, of either generation, for the tests of this folder.

producer = await Producer.of(user)               # transaction.version 2; `old=True` for 1
await producer.write("orders", b"one", b"two")
await producer.end(commit=True)                  # returns when the markers are written
"""

from __future__ import annotations

from typing import Any

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from pykafka_broker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from pykafka_broker.protocol.messages.end_txn import EndTxnRequest
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka_broker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from pykafka_broker.protocol.records.batch import iter_batches, read_records
from pykafka_broker.testing.user import User
from tests.apis.asking import batch, fetching_of, partitions_of, producing_to, wanting

ID = "payments"
MINUTE_MS = 60_000
READ_COMMITTED = 1
#: Versions that clients of transaction.version 1 and of 2 use.
OLD = {"add": 3, "produce": 10, "end": 4, "commit": 3}
NEW = {"produce": 12, "end": 5, "commit": 5}


async def coordinated(user: User, transactional_id: str = ID) -> None:
    """Find the transaction coordinator, which makes `__transaction_state` exist."""
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id])
    answer = await user.send(request, 4)
    assert answer.coordinators[0].error_code == 0


def initialising(
    transactional_id: str | None = ID,
    *,
    timeout_ms: int = MINUTE_MS,
    producer_id: int = -1,
    producer_epoch: int = -1,
) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


class Producer:
    """One transactional producer; methods that do not begin with `try` raise if they are refused."""

    def __init__(self, user: User, transactional_id: str, *, old: bool) -> None:
        self.user = user
        self.transactional_id = transactional_id
        self.old = old
        self.versions = OLD if old else NEW
        self.id = self.epoch = -1
        self.sequences: dict[tuple[str, int], int] = {}

    @classmethod
    async def of(
        cls, user: User, transactional_id: str = ID, *, old: bool = False, timeout_ms: int = MINUTE_MS
    ) -> Producer:
        """A producer that has been initialised."""
        await coordinated(user, transactional_id)
        producer = cls(user, transactional_id, old=old)
        answer = await user.send(initialising(transactional_id, timeout_ms=timeout_ms), 5)
        assert ErrorCode(answer.error_code) == ErrorCode.NONE, answer
        producer.goes_on_as(answer.producer_id, answer.producer_epoch)
        return producer

    def goes_on_as(self, producer_id: int, producer_epoch: int) -> None:
        if (producer_id, producer_epoch) != (self.id, self.epoch):
            self.sequences.clear()
        self.id, self.epoch = producer_id, producer_epoch

    # ---- a transaction ----

    async def try_to_add(self, topic: str, *partitions: int, version: int = 3) -> list[ErrorCode]:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions or (0,)))],
        )
        answer = await self.user.send(request, version)
        [result] = answer.results_by_topic_v3_and_below
        return [ErrorCode(each.partition_error_code) for each in result.results_by_partition]

    async def try_to_write(
        self, topic: str, *values: bytes, partition: int = 0, version: int | None = None, **header: Any
    ) -> Any:
        """Write one batch without announcing the partition; the partition's part of the answer."""
        header = {
            "producer_id": self.id,
            "producer_epoch": self.epoch,
            "base_sequence": self.sequences.get((topic, partition), 0),
            **header,
        }
        records = batch(*values, transactional=True, **header)
        request = producing_to(topic, records, partition, transactional_id=self.transactional_id)
        answer = await self.user.send(request, self.versions["produce"] if version is None else version)
        [found] = partitions_of(answer)
        if found.error_code == 0:
            self.sequences[topic, partition] = header["base_sequence"] + len(values)
        return found

    async def write(self, topic: str, *values: bytes, partition: int = 0) -> int:
        """Write one batch, the partition announced as the generation does it; the first offset."""
        if self.old:
            assert await self.try_to_add(topic, partition) == [ErrorCode.NONE]
        answer = await self.try_to_write(topic, *values, partition=partition)
        assert ErrorCode(answer.error_code) == ErrorCode.NONE
        offset: int = answer.base_offset
        return offset

    async def try_to_end(self, *, commit: bool, version: int | None = None) -> Any:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        return await self.user.send(request, self.versions["end"] if version is None else version)

    async def end(self, *, commit: bool = True) -> None:
        """End the transaction, go on as the coordinator says, and wait until every marker is written."""
        answer = await self.try_to_end(commit=commit)
        assert ErrorCode(answer.error_code) == ErrorCode.NONE
        if not self.old:
            self.goes_on_as(answer.producer_id, answer.producer_epoch)
        await completed(self.user, self.transactional_id)

    async def try_to_commit(
        self,
        group: str,
        topic: str,
        offset: int,
        *,
        partition: int = 0,
        version: int | None = None,
        **who: Any,
    ) -> ErrorCode:
        """TxnOffsetCommit of one partition."""
        committed = TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=None
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[committed])],
            **who,
        )
        answer = await self.user.send(request, self.versions["commit"] if version is None else version)
        [found] = partitions_of(answer)
        return ErrorCode(found.error_code)


async def described(user: User, transactional_id: str = ID) -> Any:
    """What DescribeTransactions says of one id."""
    answer = await user.send(DescribeTransactionsRequest(transactional_ids=[transactional_id]), 0)
    [state] = answer.transaction_states
    return state


async def completed(user: User, transactional_id: str = ID) -> str:
    """Wait until nothing of the id's transaction is left to do; its state."""
    while (state := (await described(user, transactional_id)).transaction_state).startswith("Prepare"):
        pass
    return str(state)


async def committed_values(user: User, topic: str, *, partition: int = 0) -> list[bytes]:
    """What a read_committed consumer gets to see: aborted records left out by the list in the answer."""
    values: list[bytes] = []
    offset = 0
    while True:
        request = fetching_of(wanting(topic, offset, partition), isolation_level=READ_COMMITTED)
        [answer] = partitions_of(await user.send(request, 12))
        assert answer.error_code == 0
        data = bytes(answer.records or b"")
        aborted = sorted((txn.first_offset, txn.producer_id) for txn in answer.aborted_transactions)
        skipped: set[int] = set()
        for position, header in iter_batches(data):
            while aborted and aborted[0][0] <= header.last_offset:
                skipped.add(aborted.pop(0)[1])
            if header.is_control:
                skipped.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in skipped):
                found = read_records(data[position : position + header.size_in_bytes])
                values += [bytes(record.value) for record in found if record.value is not None]
            offset = header.next_offset
        if not data:
            return values
