"""Round trips over bare sockets: one record, wait for its ack. The client costs a few microseconds only.

The request is built once, Produce v8 (the last version with the old, fixed header) with acks=all and one
record without producer id, so every broker accepts the same bytes again and again.
"""

from __future__ import annotations

import gc
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pykafka_broker.client import blocking
from pykafka_broker.client.blocking import ResponseBuffer
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.client.core.frames import request_frame
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.protocol.records.batch import build_batch

VERSION, ACKS_ALL, TIMEOUT_MS = 8, -1, 30_000

#: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER: a topic that was created a moment ago.
NOT_YET = (3, 6)


def produce_request(topic: str, partition: int, value_bytes: int) -> bytes:
    batch = build_batch([(int(time.time() * 1000), None, b"x" * value_bytes, [])])
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])
    request = ProduceRequest(acks=ACKS_ALL, timeout_ms=TIMEOUT_MS, topic_data=[data])
    return request_frame(request, VERSION, client_id="pinger")


def error_code(response: memoryview, topic: str) -> int:
    code: int = struct.unpack_from(">h", response, 4 + 4 + 4 + 2 + len(topic.encode()) + 4 + 4)[0]
    return code


def check(response: memoryview, topic: str) -> None:
    if code := error_code(response, topic):
        raise RuntimeError(f"the broker refused a record with error {code}")


def connect(address: str, topic: str, request: bytes) -> socket.socket:
    """A connection on which the partition of the request was seen to take records."""
    connection = blocking.connect(parse_address(address))
    responses = ResponseBuffer()
    deadline = time.monotonic() + 30
    while True:
        connection.sendall(request)
        code = error_code(responses.receive(connection), topic)
        if code not in NOT_YET or time.monotonic() > deadline:
            return connection
        time.sleep(0.05)


@contextmanager
def no_pauses() -> Iterator[None]:
    """The pinger's own garbage collections do not belong into the broker's latencies."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def quantile(sorted_values: list[float], q: float) -> float:
    return sorted_values[int(q * (len(sorted_values) - 1))]


def one_at_a_time(
    address: str, topic: str, count: int, value_bytes: int = 100, *, is_over: Callable[[], bool] | None = None
) -> dict[str, float]:
    """p50 and p99 of one record on one connection, in microseconds; with `is_over`, of as many as there is
    time for.
    """
    request = produce_request(topic, 0, value_bytes)
    took: list[float] = []
    receive = ResponseBuffer().receive
    with connect(address, topic, request) as connection, no_pauses():
        turn = -1
        while is_over is not None or turn < count + count // 10:
            turn += 1
            if is_over is not None and turn % count == count - 1 and is_over():
                break
            sent = time.perf_counter()
            connection.sendall(request)
            response = receive(connection)
            if turn >= count // 10:
                took.append(time.perf_counter() - sent)
            check(response, topic)
    took.sort()
    return {"p50_us": quantile(took, 0.5) * 1e6, "p99_us": quantile(took, 0.99) * 1e6}


def many_connections(
    address: str, topic: str, count: int, connections: int = 16, partitions: int = 4
) -> dict[str, float]:
    """Each connection has one record on its way at any time: acks a second over all, p99 in milliseconds."""
    by_number: dict[int, socket.socket] = {}
    requests: dict[int, bytes] = {}
    for n in range(connections):
        request = produce_request(topic, n % partitions, 100)
        connection = connect(address, topic, request)
        by_number[connection.fileno()], requests[connection.fileno()] = connection, request
    poll = select.epoll()
    receive = ResponseBuffer().receive
    sent_at: dict[int, float] = {}
    took: list[float] = []
    try:
        with no_pauses():
            for number, connection in by_number.items():
                poll.register(number, select.EPOLLIN)
                sent_at[number] = time.perf_counter()
                connection.sendall(requests[number])
            warm_up = count // 10
            started = time.perf_counter()
            for done in range(count + warm_up):
                if done == warm_up:
                    started = time.perf_counter()
                    took.clear()
                # One event a turn: of several, the later would wait for the client's work on the earlier.
                ((number, _),) = poll.poll(30, maxevents=1)
                check(receive(by_number[number]), topic)
                now = time.perf_counter()
                took.append(now - sent_at[number])
                sent_at[number] = now
                by_number[number].sendall(requests[number])
            seconds = time.perf_counter() - started
    finally:
        poll.close()
        for connection in by_number.values():
            connection.close()
    took.sort()
    return {"per_s": count / seconds, "p99_ms": quantile(took, 0.99) * 1e3}
