"""`elections`: elect leaders of partitions now; the output is that of kafka-leader-election.sh."""

from __future__ import annotations

from collections.abc import Sequence

import click

from pykafka_broker.cli import Group
from pykafka_broker.cli.cluster import Cluster, cluster_or_controller_options
from pykafka_broker.cli.names import topic_names
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.cli.topics import describe_topics
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import check
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.system.named_tuple import NamedTuple

PREFERRED, UNCLEAN = 0, 1


class Election(NamedTuple):
    """A partition after an election; `elected` is false if its leader was already the right one."""

    topic: str
    partition: int
    elected: bool


@click.group(cls=Group)
def elections() -> None:
    """Let partitions elect leaders."""


@elections.command("preferred")
@click.argument("partitions", nargs=-1, metavar="[TOPIC[:PARTITION]…]", shell_complete=topic_names)
@click.option("--all", "is_all", is_flag=True, help="All partitions of the cluster.")
@cluster_or_controller_options
@json_option(Election, key="partitions")
def preferred(partitions: tuple[str, ...], is_all: bool, cluster: Cluster, output: Output) -> None:
    """Give the leadership back to the first replica, where it is in sync.

    A topic without a partition means all of its partitions. With --bootstrap-controller each partition is
    named, because controllers do not list those of a topic.
    """
    if is_all == bool(partitions):
        raise click.UsageError("Name partitions, or all of them with --all.")
    _elect(PREFERRED, None if is_all else partitions, cluster, output)


@elections.command("unclean")
@click.argument(
    "partitions", nargs=-1, required=True, metavar="TOPIC[:PARTITION]…", shell_complete=topic_names
)
@cluster_or_controller_options
@json_option(Election, key="partitions")
def unclean(partitions: tuple[str, ...], cluster: Cluster, output: Output) -> None:
    """If no replica in sync is left, let another replica lead: records that it lacks are lost.

    A topic without a partition means all of its partitions. With --bootstrap-controller each partition is
    named, because controllers do not list those of a topic.
    """
    _elect(UNCLEAN, partitions, cluster, output)


def _elect(kind: int, named: Sequence[str] | None, cluster: Cluster, output: Output) -> None:
    from pykafka_broker.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

    with cluster.connect() as client:
        request = ElectLeadersRequest(
            election_type=kind, topic_partitions=None, timeout_ms=int(cluster.timeout_s * 1000)
        )
        if named is not None:
            request.topic_partitions = [
                TopicPartitions(topic=topic, partitions=indexes)
                for topic, indexes in _indexes(client, named).items()
            ]
        answer = client.send(request)
    check(answer.error_code)
    found: list[Election] = []
    errors: list[KafkaError] = []
    for topic in answer.replica_election_results:
        for result in topic.partition_result:
            code = ErrorCode(result.error_code)
            if code in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED):
                found.append(Election(topic.topic, result.partition_id, code is ErrorCode.NONE))
            else:
                name = f"{topic.topic}-{result.partition_id}"
                errors.append(KafkaError(code, f"{name}: {result.error_message or code.message}"))
    word = "PREFERRED" if kind == PREFERRED else "UNCLEAN"
    lines = []
    if elected := [_name(one) for one in found if one.elected]:
        lines.append(f"Successfully completed leader election ({word}) for partitions {', '.join(elected)}")
    if kept := [_name(one) for one in found if not one.elected]:
        lines.append(f"Valid replica already elected for partitions {', '.join(kept)}")
    output.show_all(found, lines)
    if errors:
        raise errors[0]


def _name(one: Election) -> str:
    return f"{one.topic}-{one.partition}"


def _indexes(client: Client, named: Sequence[str]) -> dict[str, list[int]]:
    """The partitions that the arguments name, by topic."""
    whole = [name for name in named if ":" not in name]
    described = describe_topics(client, whole) if whole else []
    found = {topic.name: [one.partition_index for one in topic.partitions] for topic in described}
    for name in named:
        topic, colon, index = name.rpartition(":")
        if colon:
            if not index.isdecimal():
                raise click.BadParameter(f"{name!r} is not TOPIC:PARTITION", param_hint="partitions")
            if int(index) not in found.setdefault(topic, []):
                found[topic].append(int(index))
    return found
