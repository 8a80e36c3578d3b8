"""The first records to many new partitions of three nodes, and those after their leader's death.

Each partition has a replica on every node. A request has a record for each partition that one node leads:
with the first a broker makes what it has not made with the topic, and the second, when that is on all nodes,
tells what such a request costs by itself. In a row of its own the second follows the first at once, while the
followers fetch. When the leader is killed, another node leads all of them in a new leader epoch; it and the
third are asked for acks=all from then on, again and again.
"""

from __future__ import annotations

import contextlib
import itertools
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from bench import pinger
from bench.cluster import NODES, PATIENCE_S, SETTLE_S, cast, cluster, create, create_all, settled
from pykafka_broker.client import blocking
from pykafka_broker.client.blocking import ResponseBuffer
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.client.core.frames import read_response, request_frame
from pykafka_broker.protocol.fields import api_key_of
from pykafka_broker.protocol.frames import LENGTH_BYTES
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.protocol.records.batch import build_batch
from pykafka_broker.testing.apache.nodes import Node, Nodes, Software
from pykafka_broker.testing.processes import BrokerError

#: That many partitions are those that a node leads of 100 topics with four each; of another number a node
#: leads all, of one topic.
OF_MANY_TOPICS = 130
MANY_TOPICS, PARTITIONS_EACH = 100, 4
#: The partitions of each request; of several requests with as many the medians count. The leader of the last
#: is killed.
LED = (OF_MANY_TOPICS, OF_MANY_TOPICS, OF_MANY_TOPICS, 1_000)
#: The same in a cluster before that one, so that the killed leader has no more to hand over.
LED_BEFORE = (300, 3_000)
#: Those of which the second request follows at once.
AT_ONCE = (1_000, 1_000, 1_000)
VERSION = 8
ACKS_ONE, ACKS_ALL = 1, -1
VALUE_BYTES = 100
LATEST = -1
#: So long after a request its records are on all nodes.
REPLICATED_S = 1.0
#: How long a node is left alone that has refused all records.
REST_S = 0.05
#: Records to one partition before, for compilers.
WARM_UP = 500


#: Partitions, by their topics.
Places = Mapping[str, Sequence[int]]


def first(software: Software, scale: float) -> dict[str, float]:
    """Requests with acks=1 to 130 up to 3,000 new partitions, and after the death of their leader."""
    took: defaultdict[int, list[list[float]]] = defaultdict(list)
    with cluster(software) as nodes:
        measure(nodes, warm_leader(nodes, scale), LED_BEFORE, took)
    with cluster(software) as nodes:
        leader = warm_leader(nodes, scale)
        [topic] = measure(nodes, leader, LED, took)
        figures: dict[str, float] = {}
        for count, each in took.items():
            medians = [statistics.median(seconds) for seconds in zip(*each, strict=True)]
            figures[f"first_{count}_s"], figures[f"second_{count}_s"] = medians
        least, most = min(took), max(took)
        figures["growth"] = figures[f"first_{most}_s"] / most / (figures[f"first_{least}_s"] / least)
        return figures | death(nodes, leader, topic, LED[-1])


def measure(
    nodes: Nodes, leader: int, counts: Iterable[int], took: defaultdict[int, list[list[float]]]
) -> Places:
    """Add the seconds of two requests to so many new partitions each; the partitions of the last."""
    places: Places = {}
    for number, count in enumerate(counts):
        places = new_partitions(nodes, leader, number, count)
        took[count].append(requests(nodes[leader], places, REPLICATED_S))
    return places


def again_at_once(software: Software, scale: float) -> dict[str, float]:
    """The request with acks=1 that follows the first to 1,000 new partitions as soon as that is answered."""
    with cluster(software) as nodes:
        leader = warm_leader(nodes, scale)
        took = [
            requests(nodes[leader], new_partitions(nodes, leader, number, count), 0)
            for number, count in enumerate(AT_ONCE)
        ]
    return {"seconds": statistics.median(second for _, second in took)}


def warm_leader(nodes: Nodes, scale: float) -> int:
    """The node that leads all partitions, after some records to one of them."""
    leader = cast(settled(nodes)).leader
    create(nodes, "warm", leaders=[leader])
    pinger.one_at_a_time(nodes[leader].address, "warm", max(50, int(WARM_UP * scale)))
    return leader


def new_partitions(nodes: Nodes, leader: int, number: int, count: int) -> Places:
    """As many new partitions, all of which their leader serves, and has for a while."""
    leaders = leaders_of(leader, number, count)
    create_all(nodes, leaders)
    places = {
        topic: [index for index, node_id in enumerate(of_topic) if node_id == leader]
        for topic, of_topic in leaders.items()
    }
    nodes.comes(partial(leads, nodes[leader], places), "new partitions do not come to their leader")
    time.sleep(SETTLE_S)
    return places


def leaders_of(leader: int, number: int, count: int) -> dict[str, list[int]]:
    """The leader of each partition, by topic: `count` times `leader`, and evenly the others."""
    if count != OF_MANY_TOPICS:
        return {f"first-{number}": [leader] * count}
    others = itertools.cycle(node_id for node_id in NODES if node_id != leader)
    total = MANY_TOPICS * PARTITIONS_EACH
    each = [
        leader if place * count // total < (place + 1) * count // total else next(others)
        for place in range(total)
    ]
    return {
        f"first-{number}-{topic}": each[topic * PARTITIONS_EACH : (topic + 1) * PARTITIONS_EACH]
        for topic in range(MANY_TOPICS)
    }


def leads(node: Node, places: Places) -> bool:
    """Whether a node has begun to lead these partitions, which it may have heard of before."""
    asked = [
        ListOffsetsTopic(
            name=topic,
            partitions=[
                ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in partitions
            ],
        )
        for topic, partitions in places.items()
        if partitions
    ]
    with contextlib.closing(blocking.BlockingConnection(parse_address(node.address))) as connection:
        answer = connection.send(ListOffsetsRequest(replica_id=-1, topics=asked), 5)
    return not any(partition.error_code for topic in answer.topics for partition in topic.partitions)


def produce_request(places: Places, acks: int) -> bytes:
    """A frame with a record for each of these partitions."""
    batch = build_batch([(int(time.time() * 1000), None, b"x" * VALUE_BYTES, [])])
    topics = [
        TopicProduceData(
            name=topic,
            partition_data=[PartitionProduceData(index=index, records=batch) for index in partitions],
        )
        for topic, partitions in places.items()
        if partitions
    ]
    return request_frame(
        ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=topics), VERSION, client_id="first"
    )


def taken(response: memoryview) -> list[int]:
    """The numbers of the partitions that have taken their record."""
    answer = read_response(api_key_of(ProduceRequest), VERSION, response[LENGTH_BYTES:])
    return [
        one.index
        for topic in answer.message.responses
        for one in topic.partition_responses
        if one.error_code == 0
    ]


def requests(node: Node, places: Places, rest_s: float) -> list[float]:
    """The seconds of the first request, and of the second, which is sent `rest_s` after the first answer."""
    request, count = produce_request(places, ACKS_ONE), sum(map(len, places.values()))
    took, responses = [], []
    with blocking.connect(parse_address(node.address)) as connection, pinger.no_pauses():
        receive = ResponseBuffer().receive
        for wait_s in (0, rest_s):
            time.sleep(wait_s)
            sent = time.perf_counter()
            connection.sendall(request)
            response = receive(connection)
            took.append(time.perf_counter() - sent)
            # The next answer takes its place.
            responses.append(bytes(response))
    for answer in responses:
        if refused := count - len(taken(memoryview(answer))):
            raise BrokerError(f"{refused} of {count} records are refused")
    return took


def death(nodes: Nodes, leader: int, topic: str, count: int) -> dict[str, float]:
    """From kill -9 of the leader of all partitions until each has acknowledged a record, and how many records
    they acknowledge in the second that begins with the first.
    """
    acknowledged: list[tuple[float, int]] = []
    is_over = threading.Event()
    request = produce_request({topic: range(count)}, ACKS_ALL)

    def write(node: Node) -> None:
        with contextlib.suppress(OSError), blocking.connect(parse_address(node.address)) as connection:
            receive = ResponseBuffer().receive
            while not is_over.is_set():
                connection.sendall(request)
                response = receive(connection)
                answered, indexes = time.perf_counter(), taken(response)
                acknowledged.extend((answered, index) for index in indexes)
                if not indexes:
                    is_over.wait(REST_S)

    victim = nodes[leader]
    writers = [threading.Thread(target=write, args=[node]) for node in nodes if node is not victim]
    for writer in writers:
        writer.start()
    try:
        time.sleep(1.0)
        assert victim.process is not None
        killed = time.perf_counter()
        victim.process.kill()
        while (
            not acknowledged
            or time.perf_counter() < acknowledged[0][0] + 1.5
            or len({index for _, index in acknowledged}) < count
        ):
            if time.perf_counter() > killed + PATIENCE_S:
                raise BrokerError(f"not all partitions take records within {PATIENCE_S} s")
            time.sleep(0.05)
    finally:
        is_over.set()
        for writer in writers:
            writer.join()
    begun = acknowledged[0][0]
    first_of = {index: moment for moment, index in reversed(acknowledged)}
    return {
        "death_s": max(first_of.values()) - killed,
        "acks_1s": sum(moment < begun + 1.0 for moment, _ in acknowledged),
    }


ROWS = {"cluster_first": first, "cluster_again_at_once": again_at_once}
