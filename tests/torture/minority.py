"""A node that leads partitions but has no followers must not acknowledge a write with acks=all."""

from __future__ import annotations

import time
from contextlib import closing

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.protocol.records.batch import build_batch
from pykafka_broker.testing.apache.nodes import Node
from tests.torture.clients import PATIENCE_S, QUIET
from tests.torture.users import ANYBODY, Users

TOPIC = "asked-of-minorities"
#: So many that each node leads some of them, as a rule.
PARTITIONS = 9
ALL = -1
TIMEOUT_MS = 400
#: The last version that names the topic; later ones have its id.
VERSION = 12


class Minority:
    """Made before the node is cut off, when the leaders of the partitions are known."""

    def __init__(self, addresses: str, node: Node, users: Users = ANYBODY) -> None:
        self._node = node
        self._users = users
        admin = users.admin("clerk", {"bootstrap.servers": addresses, **QUIET})
        try:
            admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(PATIENCE_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
        deadline = time.monotonic() + PATIENCE_S
        while True:
            found = admin.list_topics(TOPIC, timeout=PATIENCE_S).topics[TOPIC].partitions
            if len(found) == PARTITIONS and all(partition.leader >= 0 for partition in found.values()):
                break
            assert time.monotonic() < deadline, f"{TOPIC} is not there: {found}"
            time.sleep(0.05)
        self._led = [number for number, partition in found.items() if partition.leader == node.node_id]

    def refuses_to_write(self) -> int:
        """How many partitions it has refused to write to; if it led none, it was not asked.

        Raises AssertionError if it acknowledges a record.
        """
        if not self._led:
            return 0
        batch = build_batch([(int(time.time() * 1000), None, b"alone", ())])
        asked = [PartitionProduceData(index=number, records=batch) for number in self._led]
        topic = TopicProduceData(name=TOPIC, partition_data=asked)
        request = ProduceRequest(acks=ALL, timeout_ms=TIMEOUT_MS, topic_data=[topic])
        with closing(self._users.connection("writer", self._node.address)) as connection:
            [answered] = connection.send(request, VERSION).responses
        codes = {one.index: ErrorCode(one.error_code) for one in answered.partition_responses}
        assert ErrorCode.NONE not in codes.values(), (
            f"node {self._node.node_id} was alone, and wrote: {codes}"
        )
        return len(codes)
