"""Transactions: from a transactional id's first producer id to the markers in the partitions."""

from __future__ import annotations

from typing import Any

from interop.frames.kafka import Kafka
from pykafka_broker.protocol.messages import add_offsets_to_txn as offsets
from pykafka_broker.protocol.messages import add_partitions_to_txn as partitions
from pykafka_broker.protocol.messages import describe_transactions as describing
from pykafka_broker.protocol.messages import end_txn as ending
from pykafka_broker.protocol.messages import find_coordinator as finding
from pykafka_broker.protocol.messages import init_producer_id as beginning
from pykafka_broker.protocol.messages import list_transactions as listing
from pykafka_broker.protocol.messages import txn_offset_commit as committing
from pykafka_broker.protocol.messages import write_txn_markers as markers

TRANSACTION = 1


class Transactions:
    """Every API has transactional ids of its own."""

    def __init__(self, kafka: Kafka) -> None:
        self.kafka = kafka
        for key_type in (0, TRANSACTION):
            kafka.call_until_ok(
                finding.FindCoordinatorRequest(key_type=key_type, coordinator_keys=["golden"]), 4
            )

    def begin(self, name: str, *, with_partition: bool = True) -> dict[str, Any]:
        """A new producer, with an open transaction if it has a partition; what requests say of it."""
        request = beginning.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        self.kafka.call_until_ok(request, 4)
        producer = self.kafka.call(request, 4)
        who = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
        if with_partition:
            self.kafka.call_until_ok(self._add_partitions(name, who), 3)
        return {"transactional_id": name, **who}

    @staticmethod
    def _add_partitions(name: str, who: dict[str, Any]) -> Any:
        return partitions.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=who["producer_id"],
            v3_and_below_producer_epoch=who["producer_epoch"],
            v3_and_below_topics=[partitions.AddPartitionsToTxnTopic(name="golden", partitions=[0, 1])],
        )

    def add_partitions_to_txn(self, version: int) -> Any:
        name = f"golden-partitions-{version}"
        who = self.begin(name, with_partition=version > 3)
        request = self._add_partitions(name, who)
        if version > 3:
            topics = [partitions.AddPartitionsToTxnTopic(name="golden", partitions=[1])]
            transaction = partitions.AddPartitionsToTxnTransaction(**who, verify_only=True, topics=topics)
            return partitions.AddPartitionsToTxnRequest(transactions=[transaction])
        return request

    def add_offsets_to_txn(self, version: int) -> Any:
        who = self.begin(f"golden-offsets-{version}")
        return offsets.AddOffsetsToTxnRequest(**who, group_id="golden-group")

    def txn_offset_commit(self, version: int) -> Any:
        who = self.begin(f"golden-commit-{version}")
        self.kafka.call_until_ok(offsets.AddOffsetsToTxnRequest(**who, group_id="golden-txn-group"), 3)
        partition = committing.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=1, committed_leader_epoch=0, committed_metadata="note"
        )
        topic = committing.TxnOffsetCommitRequestTopic(name="golden", partitions=[partition])
        return committing.TxnOffsetCommitRequest(**who, group_id="golden-txn-group", topics=[topic])

    def end_txn(self, version: int) -> Any:
        return ending.EndTxnRequest(**self.begin(f"golden-end-{version}"), committed=version % 2 == 0)

    def write_txn_markers(self, version: int) -> Any:
        topics = [markers.WritableTxnMarkerTopic(name="golden", partition_indexes=[1, 7])]
        marker = markers.WritableTxnMarker(
            producer_id=99, producer_epoch=0, transaction_result=True, topics=topics, coordinator_epoch=0
        )
        return markers.WriteTxnMarkersRequest(markers=[marker])

    def describe_transactions(self, version: int) -> Any:
        self.begin("golden-described")
        return describing.DescribeTransactionsRequest(transactional_ids=["golden-described", "missing"])

    def list_transactions(self, version: int) -> Any:
        self.begin(f"golden-listed-{version}")
        return listing.ListTransactionsRequest(
            state_filters=["Ongoing", "Unknown"],
            producer_id_filters=[],
            duration_filter=0,
            transactional_id_pattern="golden-listed-.*",
        )
