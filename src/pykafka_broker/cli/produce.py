"""`produce`: write records to a topic, from arguments or from the lines of standard input.

Lines are sent as they come: those of one read make one batch per partition, so a pipe of many lines is fast
and a person at a terminal sees each line go at once. With acks=all, the default, the producer is idempotent:
it sends a batch again while leaders move and brokers stop, until `--timeout`, and the batch is written once.
With other acks, a batch without an answer may be written or not; the command says so and stops. Interrupted,
it says how many records the brokers have acknowledged.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from pykafka_broker.cli import progress
from pykafka_broker.cli.cluster import Cluster, cluster_options
from pykafka_broker.cli.interrupts import Interrupts
from pykafka_broker.cli.names import topic_names
from pykafka_broker.cli.offsets import parse_time_ms
from pykafka_broker.cli.options import INT32_MAX, gathered, pairs, progress_option
from pykafka_broker.cli.output import Form, Output, json_option
from pykafka_broker.cli.partitioner import Partitioner
from pykafka_broker.cli.suggestions import known_topic
from pykafka_broker.client.blocking import BlockingConnection, Client
from pykafka_broker.client.core.connection import check
from pykafka_broker.client.core.metadata import NO_LEADER, leaders_of, partition_error
from pykafka_broker.client.core.retries import RETRIABLE
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.protocol.records.batch import BatchFields, build_batch
from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.wording import counted

if TYPE_CHECKING:
    from pykafka_broker.client.producer import Producer

READ_BYTES = 256 * 1024
ALL_REPLICAS = -1
ACKS = {"all": ALL_REPLICAS, "-1": ALL_REPLICAS, "1": 1, "0": 0}


class NewRecord(NamedTuple):
    """A record to write; no partition means that the key decides."""

    key: bytes | None
    value: bytes | None


class Written(NamedTuple):
    """The partition and offsets of a written batch; offsets are -1 with acks=0."""

    topic: str
    partition: int
    base_offset: int
    last_offset: int
    records: int

    @property
    def line(self) -> str:
        return f"Partition:{self.partition}\tOffset:{self.base_offset}-{self.last_offset}"


class Writer:
    """Sends batches to one topic."""

    def __init__(
        self,
        client: Client,
        topic: str,
        *,
        acks: int = ALL_REPLICAS,
        codec: Codec = Codec.NONE,
        headers: tuple[tuple[str, bytes | None], ...] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> None:
        self.client = client
        self.topic = topic
        self.acks = acks
        self.codec = codec
        self.headers = headers
        self.partition = partition
        self.timestamp_ms = timestamp_ms
        #: Records that are written, and that are on their way.
        self.acknowledged = self.in_flight = 0
        self._idempotent: Producer | None = None
        self._learn_leaders()
        if partition is not None and partition not in self.leaders:
            raise partition_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topic, partition)
        led = [number for number, leader in self.leaders.items() if leader != NO_LEADER]
        self.partitioner = Partitioner(list(self.leaders), led)

    def _learn_leaders(self, *needed: int) -> None:
        """Look up the leaders, once these partitions have one."""
        found = known_topic(self.client, self.topic, led=needed, auto_create=True)
        self.topic_id: bytes = found.topic_id
        self.leaders = leaders_of(found)

    def write(self, records: Iterable[NewRecord]) -> list[Written]:
        """Write records as one batch per partition.

        Raises:
            KafkaError: the broker refuses a batch.
        """
        now = self.timestamp_ms if self.timestamp_ms is not None else int(time.time() * 1000)
        by_partition: dict[int, list[tuple[int, bytes | None, bytes | None, Any]]] = {}
        for record in records:
            partition = self.partitioner.choose(record.key) if self.partition is None else self.partition
            by_partition.setdefault(partition, []).append((now, record.key, record.value, self.headers))
        self.partitioner.next_batch()
        written = []
        for partition, batch in sorted(by_partition.items()):
            encoded = build_batch(batch, BatchFields(codec=self.codec))
            self.in_flight = len(batch)
            base_offset = self._send(partition, encoded)
            self.acknowledged, self.in_flight = self.acknowledged + len(batch), 0
            last_offset = -1 if base_offset < 0 else base_offset + len(batch) - 1
            written.append(Written(self.topic, partition, base_offset, last_offset, len(batch)))
        return written

    def _send(self, partition: int, batch: bytes) -> int:
        """The offset of the batch's first record; -1 with acks=0."""
        if self.acks == ALL_REPLICAS:
            return self._producer().write((self.topic, partition), batch)
        request = ProduceRequest(
            acks=self.acks,
            timeout_ms=int(self.client.timeout_s * 1000),
            topic_data=[
                TopicProduceData(
                    name=self.topic,
                    topic_id=self.topic_id,
                    partition_data=[PartitionProduceData(index=partition, records=batch)],
                )
            ],
        )
        for is_last in self.client.attempts():
            response = self._leader(partition).send(request)
            if response is None:
                return -1
            answer = response.responses[0].partition_responses[0]
            # A write that timed out may still happen: repeating it could write it twice.
            if (
                is_last
                or answer.error_code not in RETRIABLE
                or answer.error_code == ErrorCode.REQUEST_TIMED_OUT
            ):
                details = "; ".join(str(e.batch_index_error_message) for e in answer.record_errors)
                check(answer.error_code, answer.error_message or details)
                base_offset: int = answer.base_offset
                return base_offset
            self._learn_leaders(partition)
        raise AssertionError("attempts end with a last one")

    def _producer(self) -> Producer:
        """The producer of acks=all, with an id of its own."""
        if self._idempotent is None:
            from pykafka_broker.client.producer import Producer

            self._idempotent = Producer(self.client, delivery_timeout_s=self.client.timeout_s)
            self._idempotent.initialise()
        return self._idempotent

    def _leader(self, partition: int) -> BlockingConnection:
        """A connection to the leader of a partition, on which no earlier request is unanswered."""
        if self.leaders[partition] == NO_LEADER:
            self._learn_leaders(partition)

        def once() -> BlockingConnection:
            try:
                return self.client.connection(self.leaders[partition])
            except OSError:
                self._learn_leaders(partition)
                raise

        return self.client.retrying(once)


class LineFormat(NamedTuple):
    """The form of a record in a line, or in a VALUE; the fields are options."""

    key: str | None
    key_separator: str | None
    null_marker: str | None

    def parser(self) -> Callable[[bytes], NewRecord]:
        """The function that turns a line into a record.

        Raises:
            click.UsageError: the options exclude each other.
        """
        if self.key is not None and self.key_separator is not None:
            raise click.UsageError("Use --key or --key-separator, not both.")
        return partial(
            parse_record,
            key=_argument_bytes(self.key),
            separator=_argument_bytes(self.key_separator),
            null_marker=_argument_bytes(self.null_marker),
        )


class Sending(NamedTuple):
    """The destination and form of batches; the fields are options."""

    headers: tuple[str, ...]
    partition: int | None
    timestamp: str | None
    compression: str
    acks: str

    def writer(self, client: Client, topic: str) -> Writer:
        """The writer that sends to a topic.

        Raises:
            click.BadParameter: an option's value has no meaning.
            KafkaError: there is no such topic or partition.
        """
        return Writer(
            client,
            topic,
            acks=ACKS[self.acks],
            codec=Codec[self.compression.upper()],
            headers=tuple((name, os.fsencode(value)) for name, value in pairs(self.headers, "--header")),
            partition=self.partition,
            timestamp_ms=None if self.timestamp is None else parse_time_ms(self.timestamp),
        )


def _argument_bytes(argument: str | None) -> bytes | None:
    """An argument as the bytes that were typed, which need not be text."""
    return None if argument is None else os.fsencode(argument)


@click.command()
@click.argument("topic", shell_complete=topic_names)
@click.argument("values", nargs=-1, metavar="[VALUE…]")
@click.option("-k", "--key", help="The key of every record.")
@click.option("-K", "--key-separator", metavar="TEXT", help="Each line or VALUE is a key, this, and a value.")
@click.option("-H", "--header", "headers", metavar="KEY=VALUE", multiple=True, help="A header; repeatable.")
@click.option(
    "-p", "--partition", type=click.IntRange(0, INT32_MAX), help="Write to this partition, whatever the key."
)
@click.option("-t", "--timestamp", metavar="TIME", help="Milliseconds or ISO 8601 [now].")
@click.option(
    "-z",
    "--compression",
    type=click.Choice([codec.name.lower() for codec in Codec]),
    default="none",
    show_default=True,
    help="How batches are compressed.",
)
@click.option(
    "-a",
    "--acks",
    type=click.Choice(list(ACKS)),
    default="all",
    show_default=True,
    help="Who must have a record before it counts as written: all replicas in sync, the leader, or none.",
)
@click.option("--null-marker", metavar="TEXT", help="A key or value that is this text is null.")
@click.option("-v", "--verbose", is_flag=True, help="Print where the records went.")
@progress_option
@cluster_options
@json_option(Written, streams=True)
@gathered(LineFormat, "line_format")
@gathered(Sending, "sending")
def produce(
    topic: str,
    values: tuple[str, ...],
    line_format: LineFormat,
    sending: Sending,
    verbose: bool,
    show_progress: bool,
    cluster: Cluster,
    output: Output,
) -> int:
    """Write VALUEs to TOPIC, or each line of standard input if there is none."""
    parse = line_format.parser()
    lines = [[os.fsencode(value) for value in values]] if values else read_lines(sys.stdin.buffer)
    with cluster.connect() as client:
        writer = sending.writer(client, topic)
        says_where = verbose or output.form is Form.JSON
        how = _how_to_tell(show_progress, says_where=says_where, is_typed=not values and sys.stdin.isatty())
        with Interrupts() as interrupts, progress.progress(topic, how, _size_of_input(values)) as telling:
            try:
                with interrupts.waiting():
                    for batch in lines:
                        written = write_lines(writer, batch, parse)
                        telling.advance(sum(map(len, batch)) + len(batch), len(batch))
                        for place in written if says_where else ():
                            output.show(place, [place.line])
            except KeyboardInterrupt:
                output.note(_told_interrupted(writer))
                return interrupts.exit_status
    if output.form is Form.TABLES:
        done = "sent" if writer.acks == 0 else "written"
        click.echo(f"{counted(writer.acknowledged, 'record')} {done} to {topic}.")
    return 0


def _how_to_tell(is_asked: bool, *, says_where: bool, is_typed: bool) -> progress.Shown:
    """The form in which to show progress; none if the input is typed, unless asked for."""
    if is_typed and not is_asked:
        return progress.Shown.NOT
    return progress.shown(is_asked=is_asked, results_come=says_where)


def _size_of_input(values: tuple[str, ...]) -> int | None:
    """The number of bytes to read; None if it is not known beforehand."""
    if values:
        return None
    try:
        status = os.fstat(sys.stdin.fileno())
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _told_interrupted(writer: Writer) -> str:
    records = counted(writer.acknowledged, "record")
    if writer.acks == 0:
        told = f"Interrupted: {records} sent; without acks nothing is known of them."
    else:
        told = f"Interrupted: {records} written."
    if writer.in_flight:
        told += f" {writer.in_flight} more on their way may be written or not."
    return told


def write_lines(writer: Writer, lines: list[bytes], parse: Callable[[bytes], NewRecord]) -> list[Written]:
    """Write the records of these lines; if a line is no record, only those before it.

    Raises:
        click.ClickException: a line is no record.
        KafkaError: the broker refuses a batch.
    """
    records: list[NewRecord] = []
    try:
        records.extend(map(parse, lines))
    except click.ClickException:
        writer.write(records)
        raise
    return writer.write(records)


def parse_record(
    line: bytes, key: bytes | None, separator: bytes | None, null_marker: bytes | None
) -> NewRecord:
    """The record that a line stands for.

    Raises:
        click.ClickException: the key's separator is missing.
    """
    value: bytes | None = line
    if separator is not None:
        key, found, value = line.partition(separator)
        if not found:
            shown = line.decode(errors="replace")
            raise click.ClickException(f"No key separator found in line '{shown}'")
    if null_marker is not None:
        key = None if key == null_marker else key
        value = None if value == null_marker else value
    return NewRecord(key, value)


def read_lines(stream: BinaryIO) -> Iterator[list[bytes]]:
    """The lines of a stream, in groups of those that come at once."""
    rest = b""
    # read1 returns the bytes there are instead of waiting for more.
    while chunk := stream.read1(READ_BYTES):  # type: ignore[attr-defined]
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield [line.removesuffix(b"\r") for line in lines]
    if rest:
        yield [rest]
