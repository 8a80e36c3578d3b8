"""kafka-python 2.0.2, as Debian 12 has it: the driver's side of the protocol of ../driven.py.

In a process of its own, since today's kafka-python has the same module name.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.errors import BrokerResponseError, KafkaError, OffsetOutOfRangeError
from kafka.oauth.abstract import AbstractTokenProvider
from kafka.structs import OffsetAndMetadata

BOOTSTRAP = sys.argv[1]
LOGIN: dict[str, Any] = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
ACKS = {"all": "all", "1": 1, "0": 0}
ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
}
DEFAULT_CONFIG = 5


class BearerToken(AbstractTokenProvider):  # type: ignore[misc]
    def token(self) -> str:
        return str(LOGIN["bearer_token"])


def connection() -> dict[str, Any]:
    """What every client of this one has."""
    settings: dict[str, Any] = {"bootstrap_servers": BOOTSTRAP}
    if not LOGIN:
        return settings
    mechanism = LOGIN["mechanism"]
    settings |= {"security_protocol": "SASL_SSL" if mechanism else "SSL", "ssl_cafile": LOGIN["ca"]}
    if LOGIN["certificate"]:
        settings |= {"ssl_certfile": LOGIN["certificate"], "ssl_keyfile": LOGIN["certificate"]}
    if mechanism == "OAUTHBEARER":
        settings |= {"sasl_mechanism": mechanism, "sasl_oauth_token_provider": BearerToken()}
    elif mechanism:
        settings |= {
            "sasl_mechanism": mechanism,
            "sasl_plain_username": LOGIN["user"],
            "sasl_plain_password": LOGIN["password"],
        }
    return settings


CONNECTION = connection()


def data(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def text(found: bytes | None) -> str | None:
    return None if found is None else base64.b64encode(found).decode()


def to_json(message: Any) -> dict[str, Any]:
    return {
        "value": text(message.value),
        "key": text(message.key),
        "headers": [[name, text(value)] for name, value in message.headers],
        "timestamp_ms": message.timestamp,
        "partition": message.partition,
        "offset": message.offset,
    }


def produce(topic: str, records: list[dict[str, Any]], codec: str, acks: str, **_: object) -> list[int]:
    producer = KafkaProducer(
        **CONNECTION,
        acks=ACKS[acks],
        compression_type=None if codec == "none" else codec,
        linger_ms=5,
        retries=10,
        max_request_size=4 << 20,
    )
    try:
        sent = [
            producer.send(
                topic,
                value=data(record["value"]),
                key=data(record["key"]),
                headers=[(name, data(value)) for name, value in record["headers"]],
                partition=record["partition"],
                timestamp_ms=record["timestamp_ms"],
            )
            for record in records
        ]
        return [future.get(timeout=30).offset for future in sent]
    finally:
        producer.close()


@contextmanager
def assigned(topic: str, partitions: list[int], **settings: Any) -> Iterator[KafkaConsumer]:
    consumer = KafkaConsumer(
        **CONNECTION, enable_auto_commit=False, **{"auto_offset_reset": "none", **settings}
    )
    try:
        consumer.assign([TopicPartition(topic, partition) for partition in partitions])
        yield consumer
    finally:
        consumer.close(autocommit=False)


def read(
    topic: str, partitions: list[int], start: int | None, fetch_bytes: int | None, **_: object
) -> list[dict[str, Any]]:
    limits = (
        {}
        if fetch_bytes is None
        else {"max_partition_fetch_bytes": fetch_bytes, "fetch_max_bytes": fetch_bytes}
    )
    with assigned(topic, partitions, **limits) as consumer:
        ends = consumer.end_offsets(consumer.assignment())
        if start is None:
            consumer.seek_to_beginning()
        else:
            for partition in consumer.assignment():
                consumer.seek(partition, start)
        found: list[dict[str, Any]] = []
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            for messages in consumer.poll(timeout_ms=1000).values():
                found += map(to_json, messages)
        return found


def read_out_of_range(topic: str, offset: int, reset: str) -> int | None:
    partition = TopicPartition(topic, 0)
    try:
        with assigned(topic, [0], auto_offset_reset=reset) as consumer:
            consumer.seek(partition, offset)
            for _ in range(100):
                consumer.poll(timeout_ms=100, update_offsets=False)
                position: int = consumer.position(partition)
                if position != offset:
                    return position
    except OffsetOutOfRangeError:
        return None
    raise AssertionError("the consumer neither moved nor failed")


def place(method: str) -> Callable[[str, int], int]:
    def find(topic: str, partition: int) -> int:
        with assigned(topic, [partition]) as consumer:
            offsets: dict[TopicPartition, int] = getattr(consumer, method)(consumer.assignment())
        return offsets[TopicPartition(topic, partition)]

    return find


def offset_at(topic: str, timestamp_ms: int, partition: int) -> int | None:
    wanted = TopicPartition(topic, partition)
    with assigned(topic, [partition]) as consumer:
        found = consumer.offsets_for_times({wanted: timestamp_ms})[wanted]
    if found is None:
        return None
    offset: int = found.offset
    return offset


members: dict[str, KafkaConsumer] = {}


def open_member(
    member: str, group: str, topic: str, instance_id: str | None, session_timeout_ms: int, strategy: str
) -> None:
    members[member] = KafkaConsumer(
        topic,
        **CONNECTION,
        group_id=group,
        session_timeout_ms=session_timeout_ms,
        heartbeat_interval_ms=500,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        partition_assignment_strategy=[ASSIGNORS[strategy]],
    )


def poll(member: str, timeout_ms: int) -> list[dict[str, Any]]:
    polled = members[member].poll(timeout_ms=timeout_ms)
    return [to_json(message) for messages in polled.values() for message in messages]


def commit_metadata(group: str, topic: str, offset: int, metadata: str) -> str | None:
    partition = TopicPartition(topic, 0)
    with assigned(topic, [0], group_id=group) as consumer:
        consumer.commit({partition: OffsetAndMetadata(offset, metadata)})
        found: str | None = consumer.committed(partition, metadata=True).metadata
    return found


class Refused(Exception):
    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


def refuse(code: int, words: str) -> None:
    if code:
        raise Refused(code, words)


admin = KafkaAdminClient(**CONNECTION)


def cluster() -> dict[str, Any]:
    described = admin.describe_cluster()
    brokers = [[broker["node_id"], f"{broker['host']}:{broker['port']}"] for broker in described["brokers"]]
    return {
        "cluster_id": described["cluster_id"],
        "controller_id": described["controller_id"],
        "brokers": brokers,
    }


def create_topic(name: str, partitions: int, configs: dict[str, str], replication_factor: int) -> None:
    admin.create_topics([NewTopic(name, partitions, replication_factor, topic_configs=configs)])


def count_partitions(topic: str) -> int:
    (described,) = admin.describe_topics([topic])
    refuse(described["error_code"], topic)
    return len(described["partitions"])


def config(topic: str) -> dict[str, tuple[str, bool]]:
    (answer,) = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    code, words, _, _, entries = answer.resources[0]
    refuse(code, words)
    return {name: (value, source == DEFAULT_CONFIG) for name, value, _, source, *_ in entries}


def set_config(topic: str, key: str, value: str) -> None:
    answer = admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs={key: value})])
    code, words, *_ = answer.resources[0]
    refuse(code, words)


def group_state(group: str) -> dict[str, Any]:
    (described,) = admin.describe_consumer_groups([group])
    return {"state": described.state, "members": len(described.members)}


def delete_group(group: str) -> None:
    ((_, error),) = admin.delete_consumer_groups([group])
    refuse(error.errno, error.__name__)


def committed(group: str, topic: str, partition: int) -> int | None:
    wanted = TopicPartition(topic, partition)
    found: int = admin.list_consumer_group_offsets(group, partitions=[wanted])[wanted].offset
    return None if found < 0 else found


OPS: dict[str, Callable[..., Any]] = {
    "produce": produce,
    "read": read,
    "read_out_of_range": read_out_of_range,
    "beginning": place("beginning_offsets"),
    "end": place("end_offsets"),
    "offset_at": offset_at,
    "member.open": open_member,
    "member.poll": poll,
    "member.assignment": lambda member: [partition.partition for partition in members[member].assignment()],
    "member.commit": lambda member: members[member].commit(),
    "member.close": lambda member: members.pop(member).close(autocommit=False),
    "committed": committed,
    "commit_metadata": commit_metadata,
    "cluster": cluster,
    "create_topic": create_topic,
    "topics": lambda: admin.list_topics(),
    "partitions": count_partitions,
    "delete_topic": lambda name: admin.delete_topics([name]) and None,
    "add_partitions": lambda topic, total: admin.create_partitions({topic: NewPartitions(total)}) and None,
    "config": config,
    "set_config": set_config,
    "groups": lambda: [group for group, _ in admin.list_consumer_groups()],
    "group": group_state,
    "delete_group": delete_group,
}

writing = threading.Lock()


def say(message: dict[str, Any]) -> None:
    with writing:
        print(json.dumps(message), flush=True)


def answer(question: dict[str, Any]) -> None:
    number, op = question.pop("id"), question.pop("op")
    try:
        say({"id": number, "ok": OPS[op](**question)})
    except Refused as error:
        say({"id": number, "refused": error.code, "text": str(error)})
    except BrokerResponseError as error:
        say({"id": number, "refused": error.errno, "text": str(error)})
    except (KafkaError, ValueError) as error:
        # Its own: it has lost the broker, and now and then it trips over the closed socket.
        say({"id": number, "refused": -1, "text": repr(error)})
    except Exception as error:
        say({"id": number, "failed": repr(error)})


if __name__ == "__main__":
    features = ["ordered_headers", "null_headers", "append_time", "timestamps", "range", "commit"]
    say(
        {
            "version": kafka.__version__,
            "ops": list(OPS),
            "features": features,
            # Its sticky assignor does not run on Python 3.
            "strategies": ["roundrobin"],
        }
    )
    for line in sys.stdin:
        # A daemon, as the client's own threads are: the end of stdin ends the program.
        threading.Thread(target=answer, args=(json.loads(line),), daemon=True).start()
    os._exit(0)
