"""Producers: idempotent ones with one batch or several on their way, transactional ones, and some that send
each batch once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import NamedTuple

from pykafka_broker.client.core.conversation import CANNOT
from pykafka_broker.client.core.coordinators import find_coordinator
from pykafka_broker.client.core.metadata import find_broker, find_topic, leaders_of
from pykafka_broker.client.core.offset import CommittedOffset
from pykafka_broker.client.core.producer_state import ProducerFenced, ProducerState, TransactionLost
from pykafka_broker.client.core.producing import commit_offsets, end_transaction, initialise, produce, recover
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.protocol.records.batch import BatchFields, build_batch, with_producer
from tests.simulation.cluster.client import REQUEST_MS, RETRY_MS, TOPIC, Client, ask
from tests.simulation.cluster.ledger import Committed
from tests.simulation.cluster.offsets import look_at_committed
from tests.simulation.violation import Violation

TRANSACTION_MS = 10_000
#: What a broker remembers of a producer, and so the most that may be on its way.
MOST_IN_FLIGHT = 5
_PRODUCE_WITH_NAMES = 12


def batch_of(values: list[int], now_ms: int) -> bytes:
    """One batch, a record for each value."""
    return build_batch([(now_ms, None, b"%d" % value, ()) for value in values], BatchFields())


async def write(client: Client, partitions: int, pause_ms: int) -> None:
    """An idempotent producer: one batch at a time, each until it is acknowledged."""
    state = ProducerState(None, TRANSACTION_MS)
    await client.run(initialise(client.brokers, state, client.attempt()))
    while not client.is_over:
        partition = TOPIC, client.world.random.randrange(partitions)
        values = [next(client.clients.values) for _ in range(client.world.random.randint(1, 3))]
        batch = batch_of(values, client.clock.now_ms())
        try:
            base_offset = await client.run(produce(client.brokers, state, partition, batch, client.attempt()))
        except KafkaError as error:
            raise Violation(f"{client.name} cannot write {values} to {partition}: {error!r}") from error
        stored(client, partition, base_offset, values)
        await client.pause(pause_ms)


def stored(client: Client, partition: tuple[str, int], base_offset: int, values: list[int]) -> None:
    """A batch was acknowledged at this offset."""
    client.world.note(lambda: f"{client.name} has {values} at {partition} {base_offset}")
    client.ledger.stored(partition, base_offset, values)


class _Batch(NamedTuple):
    """A batch that was not acknowledged yet."""

    values: list[int]
    stamped: bytes


async def write_ahead(client: Client, partitions: int, pause_ms: int) -> None:
    """An idempotent producer that does not wait for an answer before it sends the next batch. After a failure
    it sends again what was not acknowledged, in order.
    """
    state = ProducerState(None, TRANSACTION_MS)
    await client.run(initialise(client.brokers, state, client.attempt()))
    chance = client.world.random
    partition = chance.randrange(partitions)
    sequence = 0
    waiting: list[_Batch] = []
    while waiting or not client.is_over:
        wanted = 0 if client.is_over else chance.randint(1, MOST_IN_FLIGHT)
        while len(waiting) < wanted:
            values = [next(client.clients.values) for _ in range(chance.randint(1, 3))]
            batch = batch_of(values, client.clock.now_ms())
            stamped = with_producer(batch, state.producer_id, state.epoch, sequence, transactional=False)
            waiting.append(_Batch(values, bytes(stamped)))
            sequence += len(values)
        before = len(waiting)
        waiting = await _send_all(client, partition, waiting)
        await client.pause(pause_ms if len(waiting) < before else RETRY_MS)


async def _send_all(client: Client, partition: int, batches: list[_Batch]) -> list[_Batch]:
    """Send the batches one behind the other; return those that have to be sent again."""
    try:
        topic = await client.run(find_topic(client.brokers, TOPIC, client.attempt(REQUEST_MS)))
        address = await client.run(find_broker(client.brokers, leaders_of(topic)[partition]))
        connection = await client.connection(address)
        answers = [
            connection.start(_produce_request(partition, each.stamped), _PRODUCE_WITH_NAMES)
            for each in batches
        ]
    except CANNOT:
        return batches
    timer = client.clock.call_at(
        client.clock.monotonic_ms() + REQUEST_MS, lambda: [answer.cancel() for answer in answers]
    )
    left: list[_Batch] = []
    for batch, answer in zip(batches, await asyncio.gather(*answers, return_exceptions=True), strict=True):
        if isinstance(answer, BaseException):
            left.append(batch)
            continue
        told = answer.responses[0].partition_responses[0]
        if told.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            stored(client, (TOPIC, partition), told.base_offset, batch.values)
        else:
            left.append(batch)
    timer.cancel()
    if left:
        await client.close(address)
    return left


def _produce_request(partition: int, batch: bytes) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=batch)
    return ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=REQUEST_MS,
        topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])],
    )


async def write_once(client: Client, partitions: int, pause_ms: int) -> None:
    """Write batches with acks=all, each once; one without an answer may be there or not.

    With a leader that lacks records an idempotent producer would have to begin anew.
    """
    while not client.is_over:
        await client.pause(pause_ms)
        values = [next(client.clients.values) for _ in range(client.world.random.randint(1, 3))]
        index = client.world.random.randrange(partitions)
        request = _produce_request(index, batch_of(values, client.clock.now_ms()))
        try:
            topic = await client.run(find_topic(client.brokers, TOPIC, client.attempt(REQUEST_MS)))
            answer = await client.run(ask(request, leaders_of(topic)[index], at_most=_PRODUCE_WITH_NAMES))
        except CANNOT:
            continue
        told = answer.responses[0].partition_responses[0]
        if not told.error_code:
            stored(client, (TOPIC, index), told.base_offset, values)


async def write_in_transactions(client: Client, partitions: int, pause_ms: int) -> None:
    """A transactional producer: commits and aborts over several partitions."""
    state = ProducerState(client.name, TRANSACTION_MS)
    await client.run(initialise(client.brokers, state, client.attempt()))
    offsets = count(1)
    while not client.is_over:
        try:
            await _one_transaction(client, state, partitions, offsets)
        except TransactionLost:
            await client.run(recover(client.brokers, state, client.attempt()))
        except ProducerFenced:  # a transaction that took too long was aborted
            state = ProducerState(client.name, TRANSACTION_MS)
            await client.run(initialise(client.brokers, state, client.attempt()))
        await client.pause(pause_ms)


async def _one_transaction(
    client: Client, state: ProducerState, partitions: int, offsets: Iterator[int]
) -> None:
    chance = client.world.random
    written: list[tuple[tuple[str, int], int]] = []
    for _ in range(chance.randint(1, 3)):
        partition = TOPIC, chance.randrange(partitions)
        values = [next(client.clients.values) for _ in range(chance.randint(1, 3))]
        batch = batch_of(values, client.clock.now_ms())
        base_offset = await client.run(produce(client.brokers, state, partition, batch, client.attempt()))
        stored(client, partition, base_offset, values)
        written += [(partition, value) for value in values]
    group = f"group-of-{client.name}"
    key = Committed(group, 0)
    offset = next(offsets) if chance.random() < 0.5 else None
    if offset is not None:
        client.ledger.commits(key, offset)
        place = {(TOPIC, 0): CommittedOffset(offset)}
        await client.run(commit_offsets(client.brokers, state, group, place, client.attempt()))
    commits = chance.random() < 0.7
    await client.run(end_transaction(client.brokers, state, client.attempt(), committed=commits))
    client.world.note(lambda: f"{client.name} has {'committed' if commits else 'aborted'} {written}")
    client.ledger.transaction_ended(written, committed=commits)
    if offset is None:
        return
    if commits:
        client.ledger.committed(key, offset)
    else:
        client.ledger.not_committed(key)
    with suppress(*CANNOT):
        node_id = await client.run(find_coordinator(client.brokers, group, client.attempt(REQUEST_MS)))
        await look_at_committed(client, node_id, group)
