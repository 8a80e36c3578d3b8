"""`explain`: why a group rebalances, a producer was fenced, a partition is offline, a request waits.

An answer has two halves. *Now* is what Kafka's APIs tell, of any cluster, Apache Kafka's too, to a user with
the permissions that they ask for. *History* is what our brokers have decided lately. Kafka has no API for
that, and none is invented: a broker serves it over HTTP, on a metrics listener with a loopback address
(`history.py`), so that it is told to those on the machine of the broker. Where it is not, the answer says so
and why.

    explanation.py   an answer as plain data, for lines, JSON, and a page of a console
    group.py, producer.py, partition.py, request.py
                     what Kafka's APIs tell about each kind
    history.py       the history and the present of each broker that can be asked
    gathering.py     an answer from all of these, for the commands here and for the console
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from pykafka_broker.cli import Group
from pykafka_broker.cli.cells import Line, Styled
from pykafka_broker.cli.cluster import Cluster, cluster_options
from pykafka_broker.cli.explain.explanation import Explanation, Fact
from pykafka_broker.cli.explain.gathering import explained
from pykafka_broker.cli.explain.partition import named
from pykafka_broker.cli.names import any_group_names, topic_names
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.cli.wording import record_time
from pykafka_broker.machine.history import Kind


@click.group(cls=Group)
def explain() -> None:
    """Tell why a group rebalances, a producer was fenced, a partition is offline, or a request waits.

    The history is that of the brokers of this machine that have a metrics listener on a loopback address
    (`start --metrics 127.0.0.1:9644`). Without one, and of Apache Kafka, it tells what Kafka's APIs do.
    """


@explain.command()
@click.argument("name", metavar="GROUP", shell_complete=any_group_names)
@cluster_options
@json_option(Explanation)
def group(name: str, cluster: Cluster, output: Output) -> None:
    """Why a group rebalances: who joined, left or timed out, and when."""
    _explain(Kind.GROUP, name, cluster, output)


@explain.command()
@click.argument("name", metavar="TRANSACTIONAL_ID|PRODUCER_ID")
@cluster_options
@json_option(Explanation)
def producer(name: str, cluster: Cluster, output: Output) -> None:
    """Why a producer was fenced, or a batch of it refused."""
    _explain(Kind.PRODUCER, name, cluster, output)


@explain.command()
@click.argument("name", metavar="TOPIC-PARTITION", shell_complete=topic_names)
@cluster_options
@json_option(Explanation)
def partition(name: str, cluster: Cluster, output: Output) -> None:
    """Why a partition is offline, or has too few replicas in sync."""
    try:
        name = named(name)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="TOPIC-PARTITION") from None
    _explain(Kind.PARTITION, name, cluster, output)


@explain.command()
@click.argument("name", metavar="CLIENT_ID|PRINCIPAL")
@cluster_options
@json_option(Explanation)
def request(name: str, cluster: Cluster, output: Output) -> None:
    """Why the requests of a client wait, or were denied or throttled."""
    _explain(Kind.REQUEST, name, cluster, output)


def _explain(kind: Kind, name: str, cluster: Cluster, output: Output) -> None:
    with cluster.connect() as client:
        found = explained(client, kind, name).with_commands(cluster.addressed)
    output.show(found, _lines(found))


def _lines(found: Explanation) -> Iterator[Line]:
    """The history first: of a long answer, a terminal shows the end."""
    if found.asked_nodes:
        nodes = ", ".join(map(str, found.asked_nodes))
        yield f"History of broker {nodes}:" if found.history else f"History of broker {nodes}: nothing."
    for fact in found.history:
        yield from _fact(fact)
    for why in found.missing:
        yield f"History not available: {why}"
    yield Styled(f"{found.kind} {found.name}", "bold white"), ", now:"
    for fact in found.now:
        yield from _fact(fact)


def _fact(fact: Fact) -> Iterator[Line]:
    when = "" if fact.last_ms is None else f"{record_time(fact.last_ms)}  "
    again = ""
    if fact.times > 1 and fact.first_ms is not None:
        again = f" ({fact.times:,} times since {record_time(fact.first_ms)})"
    yield f"  {when}{fact.text}{again}"
    if fact.remedy:
        yield f"      {fact.remedy}"
