"""Where our own code fails over a group or a transaction, the client is told so in the words of its API; a
connection that just closed would send it to look for another broker.
"""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis import APIS
from pykafka_broker.protocol.compile import decode, encode
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages import add_offsets_to_txn as add_offsets
from pykafka_broker.protocol.messages import add_partitions_to_txn as add_partitions
from pykafka_broker.protocol.messages import consumer_group_describe, describe_producers, txn_offset_commit
from pykafka_broker.protocol.messages import consumer_group_heartbeat as heartbeat
from pykafka_broker.protocol.messages import describe_transactions as describe
from pykafka_broker.protocol.messages import end_txn as end
from pykafka_broker.protocol.messages import init_producer_id as init
from pykafka_broker.protocol.messages import list_transactions as listing
from pykafka_broker.protocol.messages import write_txn_markers as markers

FAILURE = int(ErrorCode.UNKNOWN_SERVER_ERROR)

#: Each request, and what it is answered when nothing better can be said.
CASES: list[tuple[Any, Any]] = [
    (
        heartbeat.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0),
        heartbeat.ConsumerGroupHeartbeatResponse(error_code=FAILURE, member_epoch=0, heartbeat_interval_ms=0),
    ),
    (
        consumer_group_describe.ConsumerGroupDescribeRequest(
            group_ids=["g"], include_authorized_operations=False
        ),
        consumer_group_describe.ConsumerGroupDescribeResponse(
            groups=[
                consumer_group_describe.DescribedGroup(
                    error_code=FAILURE,
                    group_id="g",
                    group_state="",
                    group_epoch=0,
                    assignment_epoch=0,
                    assignor_name="",
                    members=[],
                )
            ]
        ),
    ),
    (
        init.InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1),
        init.InitProducerIdResponse(error_code=FAILURE, producer_id=-1, producer_epoch=-1),
    ),
    (
        end.EndTxnRequest(transactional_id="t", producer_id=1, producer_epoch=0, committed=True),
        end.EndTxnResponse(error_code=FAILURE, producer_id=-1, producer_epoch=-1),
    ),
    (
        add_offsets.AddOffsetsToTxnRequest(
            transactional_id="t", producer_id=1, producer_epoch=0, group_id="g"
        ),
        add_offsets.AddOffsetsToTxnResponse(error_code=FAILURE),
    ),
    (
        add_partitions.AddPartitionsToTxnRequest(
            transactions=[
                add_partitions.AddPartitionsToTxnTransaction(
                    transactional_id="t", producer_id=1, producer_epoch=0, topics=[]
                )
            ]
        ),
        add_partitions.AddPartitionsToTxnResponse(error_code=FAILURE),
    ),
    (
        describe.DescribeTransactionsRequest(transactional_ids=["t"]),
        describe.DescribeTransactionsResponse(
            transaction_states=[
                describe.TransactionState(
                    error_code=FAILURE,
                    transactional_id="t",
                    transaction_state="",
                    transaction_timeout_ms=0,
                    transaction_start_time_ms=0,
                    producer_id=0,
                    producer_epoch=0,
                    topics=[],
                )
            ]
        ),
    ),
    (
        listing.ListTransactionsRequest(state_filters=[], producer_id_filters=[]),
        listing.ListTransactionsResponse(error_code=FAILURE, unknown_state_filters=[], transaction_states=[]),
    ),
    (
        describe_producers.DescribeProducersRequest(
            topics=[describe_producers.TopicRequest(name="t", partition_indexes=[3])]
        ),
        describe_producers.DescribeProducersResponse(
            topics=[
                describe_producers.TopicResponse(
                    name="t",
                    partitions=[
                        describe_producers.PartitionResponse(
                            partition_index=3, error_code=FAILURE, active_producers=[]
                        )
                    ],
                )
            ]
        ),
    ),
    (
        txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id="t",
            group_id="g",
            producer_id=1,
            producer_epoch=0,
            topics=[
                txn_offset_commit.TxnOffsetCommitRequestTopic(
                    name="t",
                    partitions=[
                        txn_offset_commit.TxnOffsetCommitRequestPartition(
                            partition_index=3, committed_offset=7, committed_metadata=None
                        )
                    ],
                )
            ],
        ),
        txn_offset_commit.TxnOffsetCommitResponse(
            topics=[
                txn_offset_commit.TxnOffsetCommitResponseTopic(
                    name="t",
                    partitions=[
                        txn_offset_commit.TxnOffsetCommitResponsePartition(
                            partition_index=3, error_code=FAILURE
                        )
                    ],
                )
            ]
        ),
    ),
    (
        markers.WriteTxnMarkersRequest(
            markers=[
                markers.WritableTxnMarker(
                    producer_id=1,
                    producer_epoch=0,
                    transaction_result=True,
                    topics=[markers.WritableTxnMarkerTopic(name="t", partition_indexes=[3])],
                    coordinator_epoch=0,
                )
            ]
        ),
        markers.WriteTxnMarkersResponse(
            markers=[
                markers.WritableTxnMarkerResult(
                    producer_id=1,
                    topics=[
                        markers.WritableTxnMarkerTopicResult(
                            name="t",
                            partitions=[
                                markers.WritableTxnMarkerPartitionResult(
                                    partition_index=3, error_code=FAILURE
                                )
                            ],
                        )
                    ],
                )
            ]
        ),
    ),
]


@pytest.mark.parametrize(("request_", "answer"), CASES, ids=lambda one: type(one).__name__)
def test_a_failure_of_ours_is_answered_in_the_form_of_the_api(request_: Any, answer: Any) -> None:
    (api,) = [api for api in APIS if api.request is type(request_)]
    assert api.error_response is not None
    failed = api.error_response(request_, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
    newest = api.max_version
    assert decode(type(answer), newest, encode(failed, newest))[0] == answer


def test_partitions_of_the_only_transaction_of_older_clients_fail_one_by_one() -> None:
    (api,) = [api for api in APIS if api.request is add_partitions.AddPartitionsToTxnRequest]
    assert api.error_response is not None
    request = add_partitions.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="t",
        v3_and_below_producer_id=1,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=[add_partitions.AddPartitionsToTxnTopic(name="t", partitions=[3])],
    )
    failed = api.error_response(request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
    assert failed == add_partitions.AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            add_partitions.AddPartitionsToTxnTopicResult(
                name="t",
                results_by_partition=[
                    add_partitions.AddPartitionsToTxnPartitionResult(
                        partition_index=3, partition_error_code=FAILURE
                    )
                ],
            )
        ]
    )
