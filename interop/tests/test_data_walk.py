"""Random walks of the data path, with our broker twice: they are equal, and what is planted is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from interop.conformance.batches import changed
from interop.conformance.data_walk import Taken, Walk, run, shorten, summary, take, tell, walks
from interop.conformance.play import OUR_SETTINGS, Verdict, side_of
from interop.conformance.talk import Side
from interop.conformance.tampering import Tampering
from pykafka_broker.protocol.messages.describe_producers import DescribeProducersResponse
from pykafka_broker.protocol.messages.fetch import FetchResponse
from pykafka_broker.protocol.messages.list_offsets import ListOffsetsResponse
from pykafka_broker.protocol.messages.produce import ProduceResponse
from pykafka_broker.protocol.records.batch import iter_batches
from pykafka_broker.testing.processes import PykafkaBroker

STEPS = 60


@dataclass
class World:
    left: Side
    right: Side

    def take(self, walk: Walk, change: Callable[[Any], None], *responses: type) -> Taken:
        """A walk whose answers of one side are changed on their way."""

        def tampered(_api_key: int, _version: int, message: Any) -> Any:
            if isinstance(message, responses):
                change(message)
            return message

        with Tampering(self.right.address, tampered) as proxy:
            right = Side(self.right.name, proxy.address, self.right.fixed, self.right.ports)
            return take(walk, self.left, right)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with PykafkaBroker(OUR_SETTINGS) as left, PykafkaBroker(OUR_SETTINGS) as right:
        yield World(side_of(left), side_of(right))


def test_walks_repeat_themselves(world: World) -> None:
    reports: list[str] = []
    found = run(walks(0, 6, STEPS), world.left, world.right, reports.append)

    answers = sum(taken.answers for taken in found)
    assert reports == []
    assert summary(found) == f"6 of 6 walks of the data path equal, {answers} of {answers} answers"
    assert answers > 6 * STEPS
    assert {bool(taken.configs) for taken in found} == {True, False}, "defaults and settings of its own"


def test_a_walk_asks_the_same_again_without_a_part_of_its_steps(world: World) -> None:
    def asked(steps: tuple[int, ...]) -> list[str]:
        told = take(Walk(1, steps), world.left, world.right).told
        return [entry.text.partition(":")[0] for entry in told if entry.step in steps]

    every = [asked((step,)) for step in range(1, 6)]

    assert asked(tuple(range(1, 6))) == [text for each in every for text in each]


def fetched(change: Callable[[Any], dict[str, Any]]) -> Callable[[Any], None]:
    """Change the header of every batch that is fetched."""

    def tamper(message: FetchResponse) -> None:
        for topic in message.responses:
            for partition in topic.partitions:
                data = bytes(partition.records or b"")
                partition.records = b"".join(
                    changed(data[start : start + header.size_in_bytes], **change(header))
                    for start, header in iter_batches(data)
                )

    return tamper


def markers_say_when_they_were_written(header: Any) -> dict[str, int]:
    return {"attributes": header.attributes ^ (0x08 if header.attributes & 0x20 else 0)}


def the_producer_is_believed(header: Any) -> dict[str, int]:
    return {"max_timestamp": header.max_timestamp + (header.records_count > 2)}


def aborted_transactions_are_left_out(message: FetchResponse) -> None:
    for topic in message.responses:
        for partition in topic.partitions:
            del (partition.aborted_transactions or [])[:1]


def the_next_record_is_found(message: ListOffsetsResponse) -> None:
    for topic in message.topics:
        for partition in topic.partitions:
            partition.offset += partition.timestamp >= 0


def the_last_sequence_is_one_too_low(message: DescribeProducersResponse) -> None:
    for topic in message.topics:
        for partition in topic.partitions:
            for producer in partition.active_producers:
                producer.last_sequence -= 1


def zstd_is_an_invalid_record(message: ProduceResponse) -> None:
    for topic in message.responses:
        for partition in topic.partition_responses:
            if partition.error_code == 76:
                partition.error_code = 87


PLANTED: dict[str, tuple[Callable[[Any], None], type]] = {
    "markers say when they were written": (fetched(markers_say_when_they_were_written), FetchResponse),
    "the producer is believed": (fetched(the_producer_is_believed), FetchResponse),
    "aborted transactions are left out": (aborted_transactions_are_left_out, FetchResponse),
    "the next record is found": (the_next_record_is_found, ListOffsetsResponse),
    "the last sequence is one too low": (the_last_sequence_is_one_too_low, DescribeProducersResponse),
    "zstd is an invalid record": (zstd_is_an_invalid_record, ProduceResponse),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_difference_is_found(world: World, planted: str) -> None:
    change, response = PLANTED[planted]
    verdicts = (world.take(walk, change, response).result.verdict for walk in walks(0, 20, STEPS))
    assert Verdict.DIFFERENT in verdicts


def test_a_difference_is_told_with_the_few_steps_it_takes(world: World) -> None:
    change, response = PLANTED["zstd is an invalid record"]

    def again(walk: Walk) -> Taken:
        return world.take(walk, change, response)

    differing = next(taken for walk in walks(0, 5, STEPS) if not (taken := again(walk)).is_equal)
    shortest = shorten(differing, again)
    told = tell(differing, shortest, STEPS).splitlines()

    (step,) = shortest.walk.steps
    assert step == differing.first_step
    seed = differing.walk.seed
    assert told[0] == f"different: walk {seed}, first at step {step}; to repeat it:"
    assert told[1].endswith(f"data_walk --seed {seed} --walks 1 --steps {STEPS} --only {step}")
    assert f"    {step}: Produce v" in told[-2]
    assert told[-1].endswith('error_code: Apache "76 UNSUPPORTED_COMPRESSION_TYPE", ours "87 INVALID_RECORD"')
