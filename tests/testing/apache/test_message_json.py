"""Messages as the JSON of Apache Kafka's `JsonConverter` classes."""

from __future__ import annotations

from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.testing.apache.message_json import kafka_json


def test_kafkas_json_has_its_own_names_and_writes_bytes_in_base64() -> None:
    message = ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=1,
        topic_data=[
            TopicProduceData(
                topic_id=bytes(15) + b"\xff",
                partition_data=[PartitionProduceData(index=0, records=b"\xff\xfe")],
            )
        ],
    )
    topic = {"topicId": "AAAAAAAAAAAAAAAAAAAA_w", "partitionData": [{"index": 0, "records": "//4="}]}

    assert kafka_json(message, 13) == {
        "transactionalId": None,
        "acks": -1,
        "timeoutMs": 1,
        "topicData": [topic],
    }
    topic["partitionData"] = [{"index": 0, "recordsSizeInBytes": 2}]
    assert kafka_json(message, 13, written=True)["topicData"] == [topic]
