"""Where our own code fails, the client is told so in the words of its API; a connection that just closed
would send it to look for another broker.
"""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis import APIS
from pykafka_broker.apis.api import CLOSE, Api
from pykafka_broker.apis.controller_apis import CONTROLLER_APIS
from pykafka_broker.protocol.compile import decode, encode
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.protocol.messages import add_offsets_to_txn as add_offsets
from pykafka_broker.protocol.messages import add_partitions_to_txn as add_partitions
from pykafka_broker.protocol.messages import consumer_group_describe, describe_producers, txn_offset_commit
from pykafka_broker.protocol.messages import consumer_group_heartbeat as heartbeat
from pykafka_broker.protocol.messages import describe_topic_partitions as describing
from pykafka_broker.protocol.messages import describe_transactions as describe
from pykafka_broker.protocol.messages import end_txn as end
from pykafka_broker.protocol.messages import find_coordinator as finding
from pykafka_broker.protocol.messages import init_producer_id as init
from pykafka_broker.protocol.messages import list_offsets as listing_offsets
from pykafka_broker.protocol.messages import list_transactions as listing
from pykafka_broker.protocol.messages import offset_for_leader_epoch as epochs
from pykafka_broker.protocol.messages import write_txn_markers as markers
from pykafka_broker.protocol.messages.produce import ProduceRequest
from pykafka_broker.protocol.schema import Message
from pykafka_broker.testing.messages import as_of, full

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
    (
        listing_offsets.ListOffsetsRequest(
            replica_id=-1,
            topics=[
                listing_offsets.ListOffsetsTopic(
                    name="t",
                    partitions=[listing_offsets.ListOffsetsPartition(partition_index=3, timestamp=-1)],
                )
            ],
        ),
        listing_offsets.ListOffsetsResponse(
            topics=[
                listing_offsets.ListOffsetsTopicResponse(
                    name="t",
                    partitions=[
                        listing_offsets.ListOffsetsPartitionResponse(partition_index=3, error_code=FAILURE)
                    ],
                )
            ]
        ),
    ),
    (
        epochs.OffsetForLeaderEpochRequest(
            topics=[
                epochs.OffsetForLeaderTopic(
                    topic="t", partitions=[epochs.OffsetForLeaderPartition(partition=3, leader_epoch=0)]
                )
            ]
        ),
        epochs.OffsetForLeaderEpochResponse(
            topics=[
                epochs.OffsetForLeaderTopicResult(
                    topic="t", partitions=[epochs.EpochEndOffset(error_code=FAILURE, partition=3)]
                )
            ]
        ),
    ),
    (
        describing.DescribeTopicPartitionsRequest(topics=[describing.TopicRequest(name="t")]),
        describing.DescribeTopicPartitionsResponse(
            topics=[
                describing.DescribeTopicPartitionsResponseTopic(
                    error_code=FAILURE, name="t", topic_id=bytes(16), partitions=[]
                )
            ]
        ),
    ),
    (
        finding.FindCoordinatorRequest(coordinator_keys=["g"], key_type=0),
        finding.FindCoordinatorResponse(
            coordinators=[
                finding.Coordinator(
                    key="g",
                    node_id=-1,
                    host="",
                    port=-1,
                    error_code=FAILURE,
                    error_message=ErrorCode.UNKNOWN_SERVER_ERROR.message,
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


#: The first versions that have a place for an error.
FIRST_VERSION_WITH_ERROR = {"DescribeLogDirs": 3}

SERVED = [(api, "a broker") for api in APIS] + [(api, "a controller") for api in CONTROLLER_APIS]


@pytest.mark.parametrize(
    ("api", "listener"), SERVED, ids=lambda one: one if isinstance(one, str) else one.name
)
def test_every_api_answers_a_failure_at_every_version(api: Api[Any], listener: str) -> None:
    """The request names topics, groups or resources where it can: each is told, or all at once."""
    assert api.error_response is not None, f"{api.name} of {listener} would close the connection"
    first = FIRST_VERSION_WITH_ERROR.get(api.name, api.min_version)
    for version in range(first, api.max_version + 1):
        sent = encode(as_of(full(api.request), version), version)
        request: Any = decode(api.request, version, bytes(sent))[0]
        answer = api.error_response(request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
        told, _ = decode(type(answer), version, bytes(encode(answer, version)))
        assert FAILURE in errors_in(told), f"v{version}: {told}"


def errors_in(message: Any) -> set[int]:
    """The error codes anywhere in a message."""
    found: set[int] = set()
    for field in schema_of(message).fields:
        value = getattr(message, field.name)
        if field.name.endswith("error_code"):
            found.add(value)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Message):
                found |= errors_in(item)
    return found


def test_a_failed_produce_that_asked_for_no_answer_loses_its_connection() -> None:
    """The producer then looks again who leads."""
    (api,) = [api for api in APIS if api.request is ProduceRequest]
    assert api.error_response is not None
    request = ProduceRequest(acks=0, timeout_ms=1, topic_data=[])
    assert api.error_response(request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)) is CLOSE
