"""A user without ACLs, who tries to write, to read and to administrate at each node while nodes fail, and is
refused each time.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from pykafka_broker.client.blocking import BlockingConnection
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
from pykafka_broker.protocol.messages import (
    create_topics,
    delete_topics,
    find_coordinator,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    produce,
)
from pykafka_broker.protocol.messages import init_producer_id as producer_ids
from pykafka_broker.protocol.records.batch import build_batch
from pykafka_broker.testing.user import fetch_request
from tests.torture.clients import GROUP, TOPIC
from tests.torture.secured_users import STRANGER
from tests.torture.security import Security

ALL = -1
GROUPS = 0
#: The last version that names the topic; later ones have its id.
BY_NAME = 12
REST_S = 0.02
#: Node, what was tried there, and the answer.
Answer = tuple[int, str, ErrorCode]


def written(connection: BlockingConnection) -> produce.ProduceResponse:
    batch = build_batch([(int(time.time() * 1000), None, b"strange", ())])
    data = [produce.PartitionProduceData(index=0, records=batch)]
    topic = produce.TopicProduceData(name=TOPIC, partition_data=data)
    request = produce.ProduceRequest(acks=ALL, timeout_ms=1_000, topic_data=[topic])
    answer: produce.ProduceResponse = connection.send(request, BY_NAME)
    return answer


def write(connection: BlockingConnection) -> int:
    return int(written(connection).responses[0].partition_responses[0].error_code)


def read(connection: BlockingConnection) -> int:
    partition = connection.send(fetch_request(TOPIC), BY_NAME).responses[0].partitions[0]
    assert not (partition.error_code and partition.records)
    return int(partition.error_code)


def ask_for_the_end(connection: BlockingConnection) -> int:
    partition = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)
    topic = list_offsets.ListOffsetsTopic(name=TOPIC, partitions=[partition])
    answer = connection.send(list_offsets.ListOffsetsRequest(replica_id=-1, topics=[topic]), 7)
    return int(answer.topics[0].partitions[0].error_code)


def look(connection: BlockingConnection) -> int:
    request = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=TOPIC)])
    [topic] = connection.send(request, BY_NAME).topics
    assert not topic.partitions and topic.topic_id == bytes(16)
    return int(topic.error_code)


def look_around(connection: BlockingConnection) -> int:
    """All topics are none."""
    assert connection.send(metadata.MetadataRequest(topics=None), BY_NAME).topics == []
    return ErrorCode.TOPIC_AUTHORIZATION_FAILED


def find_group(connection: BlockingConnection) -> int:
    request = find_coordinator.FindCoordinatorRequest(key_type=GROUPS, coordinator_keys=[GROUP])
    return int(connection.send(request, 4).coordinators[0].error_code)


def commit(connection: BlockingConnection) -> int:
    partition = offset_commit.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=0, committed_metadata=None
    )
    topics = [offset_commit.OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])]
    request = offset_commit.OffsetCommitRequest(group_id=GROUP, member_id="", topics=topics)
    return int(connection.send(request, 9).topics[0].partitions[0].error_code)


def ask_for_commits(connection: BlockingConnection) -> int:
    asked = offset_fetch.OffsetFetchRequestGroup(group_id=GROUP, topics=None)
    return int(connection.send(offset_fetch.OffsetFetchRequest(groups=[asked]), 8).groups[0].error_code)


def fence(connection: BlockingConnection) -> int:
    """What would end the transactions of the teller."""
    request = producer_ids.InitProducerIdRequest(transactional_id="teller", transaction_timeout_ms=1_000)
    return int(connection.send(request, 4).error_code)


def create(connection: BlockingConnection) -> int:
    topic = create_topics.CreatableTopic(
        name="strange", num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    return int(connection.send(create_topics.CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code)


def delete(connection: BlockingConnection) -> int:
    topic = delete_topics.DeleteTopicState(name=TOPIC, topic_id=bytes(16))
    request = delete_topics.DeleteTopicsRequest(topics=[topic], timeout_ms=1_000)
    return int(connection.send(request, 6).responses[0].error_code)


OF_TOPICS = ErrorCode.TOPIC_AUTHORIZATION_FAILED
OF_GROUPS = ErrorCode.GROUP_AUTHORIZATION_FAILED
ATTEMPTS: Mapping[Callable[[BlockingConnection], int], ErrorCode] = {
    write: OF_TOPICS,
    read: OF_TOPICS,
    ask_for_the_end: OF_TOPICS,
    look: OF_TOPICS,
    look_around: OF_TOPICS,
    find_group: OF_GROUPS,
    commit: OF_GROUPS,
    ask_for_commits: OF_GROUPS,
    fence: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    create: OF_TOPICS,
    delete: OF_TOPICS,
}


class Stranger:
    """Tries everything at each node in turn, in a thread; nodes that do not answer are left for later."""

    def __init__(self, security: Security, addresses: Mapping[int, str]) -> None:
        self._security = security
        self._addresses = addresses
        self.answers: Counter[Answer] = Counter()
        self._connections: dict[int, BlockingConnection] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._errors: list[BaseException] = []

    def __enter__(self) -> Stranger:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._errors:
            raise self._errors[0]

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                for node_id in self._addresses:
                    self._try_all(node_id)
        except BaseException as error:
            self._errors.append(error)
        finally:
            for connection in self._connections.values():
                connection.close()

    def _try_all(self, node_id: int) -> None:
        for attempt in ATTEMPTS:
            if self._stop.wait(REST_S):
                return
            try:
                self._note(node_id, attempt, attempt(self._connection(node_id)))
            except KafkaError as error:
                self._note(node_id, attempt, error.code)
            except (OSError, ProtocolError):
                # It is down, or the session is over, which this client does not renew.
                return

    def _note(self, node_id: int, attempt: Callable[[BlockingConnection], int], code: int) -> None:
        self.answers[node_id, attempt.__name__, ErrorCode(code)] += 1

    def _connection(self, node_id: int) -> BlockingConnection:
        known = self._connections.get(node_id)
        if known is None or known.is_closed:
            password = self._security.users.passwords[STRANGER]
            known = self._security.login(self._addresses[node_id], STRANGER, password)
            self._connections[node_id] = known
        return known


def wrong_answers(node_ids: Iterable[int], answers: Iterable[Answer]) -> dict[str, Sequence[Answer]]:
    """Answers that are no refusals, and what was never refused. A request that timed out because its
    controller was away had no answer.
    """
    told = {answer for answer in answers if answer[2] is not ErrorCode.REQUEST_TIMED_OUT}
    expected = {
        (node_id, attempt.__name__, code) for node_id in node_ids for attempt, code in ATTEMPTS.items()
    }
    found = {"answered": sorted(told - expected), "never refused": sorted(expected - told)}
    return {name: these for name, these in found.items() if these}
