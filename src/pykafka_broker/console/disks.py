"""Log directories: of all brokers, and the replicas of one topic in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pykafka_broker.cli.brokers import disk_table, log_dirs
from pykafka_broker.cli.cells import Cell, Column, Table
from pykafka_broker.cli.wording import human_size
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import check
from pykafka_broker.console.page import PAGE_ROWS, Page, Part, Row, Section, if_told, listing
from pykafka_broker.console.visit import Visit
from pykafka_broker.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest

COLUMNS = (
    Column("PARTITION", is_number=True),
    Column("BROKER", is_number=True),
    Column("LOG DIR"),
    Column("SIZE", is_number=True),
    Column("LAG", is_number=True),
    Column("MOVES HERE", drop=1),
)


def show(visit: Visit) -> Page:
    """The page of log directories."""
    brokers = sorted(broker.node_id for broker in visit.client.metadata([]).brokers)
    return Page("Log directories", [_of_broker(visit.client, broker) for broker in brokers])


def _of_broker(client: Client, broker: int) -> Section:
    def directories() -> Sequence[Part]:
        return (listing(disk_table(list(log_dirs(client, broker))), f"Directories of {broker}"),)

    return Section(f"Broker {broker}", if_told(directories))


def of_topic(client: Client, name: str, partitions: Sequence[int], brokers: Iterable[int]) -> Sequence[Part]:
    """Where the replicas of a topic are, and how large.

    Raises:
        KafkaError: a broker does not tell this client.
    """
    request = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic=name, partitions=list(partitions))])
    known = {broker.node_id for broker in client.metadata([]).brokers}
    found: list[tuple[int, int, Row]] = []
    total = 0
    for broker in sorted(known & set(brokers)):
        answer = client.send(request, broker)
        check(answer.error_code)
        for folder in answer.results:
            for replica in (replica for topic in folder.topics for replica in topic.partitions):
                total += replica.partition_size
                moves = "yes" if replica.is_future_key else None
                size = human_size(replica.partition_size)
                index = replica.partition_index
                row = [index, broker, folder.log_dir, size, replica.offset_lag, moves]
                found.append((index, broker, row))
    rows = [row for *_, row in sorted(found, key=lambda one: one[:2])]
    footer = f"The first {PAGE_ROWS} of {len(rows)} replicas." if len(rows) > PAGE_ROWS else None
    details: list[tuple[str, Cell]] = [("replicas", len(rows)), ("bytes", human_size(total))]
    return (listing(Table(COLUMNS, details=details, footer=footer), f"Replicas of {name}", rows[:PAGE_ROWS]),)
