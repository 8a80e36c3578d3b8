"""`cluster status`: who leads the quorum, which brokers are up, which partitions lack replicas.

Any broker answers with the metadata that it knows, but only the quorum's leader describes the quorum. If none
leads, the rest is still shown, with its source, its age and what can be written, and the command ends with a
status of its own.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from pykafka_broker.cli.brokers import (
    BrokerStatus,
    broker_lines,
    broker_statuses,
    broker_table,
    or_unknown,
    with_silent,
)
from pykafka_broker.cli.cells import Cell, Column, Line, Styled, Table
from pykafka_broker.cli.cluster import Cluster, cluster_options
from pykafka_broker.cli.interrupts import Interrupts
from pykafka_broker.cli.local_cluster.lags import Ends, Lag, greatest, log_ends, partition_lag
from pykafka_broker.cli.local_cluster.options import folder_option
from pykafka_broker.cli.local_cluster.processes import states_of
from pykafka_broker.cli.options import Seconds
from pykafka_broker.cli.output import Form, Output, json_option
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.controllers import Controllers
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.client.core.connection import check
from pykafka_broker.client.quorum import QUORUM_WITHIN_S, LostQuorum, QuorumStatus, quorum_status
from pykafka_broker.client.reassignments import Ongoing, reassignments_as_told, replication_factor
from pykafka_broker.doctor.quorum import Source, look, silent_voters, told_of_loss, why_nothing_changes
from pykafka_broker.doctor.topics import strongest_acks, taken_now
from pykafka_broker.local_cluster.folder import ClusterFolder
from pykafka_broker.protocol.errors import KafkaError, ProtocolError
from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.system.named_tuple import NamedTuple

#: The type of a topic among the resources that have configurations.
TOPIC = 2
MIN_ISR = "min.insync.replicas"
#: The default time between two looks.
WATCH_S = 2.0
#: Exit status where the quorum has no leader.
NO_QUORUM = 4
#: What to run where no broker answers, and no folder tells where the controllers are.
ASK_CONTROLLERS = (
    "controllers answer even if no broker does: "
    "`pykafka-broker quorum describe --bootstrap-controller HOST:PORT`"
)


class TopicStatus(NamedTuple):
    """The number of a topic's partitions that kafka-topics shows with the options of these names; None
    without a quorum, because then stopped replicas stay in the ISR.
    """

    topic: str
    partitions: int
    under_replicated: int | None
    at_min_isr: int | None
    under_min_isr: int | None
    offline: int | None
    #: As in `Lag`, of those partitions whose leaders tell; None if no leader does.
    max_lag: int | None
    silent_replicas: list[int]

    @property
    def lag(self) -> Lag:
        return Lag(self.max_lag, self.silent_replicas)


class PartitionStatus(NamedTuple):
    """A partition; `leader` is None without one, the lag as in `Lag`. `missing` are the replicas that are not
    in sync, except those that a reassignment adds. `acks` are the strongest with which it takes
    records now: "all", "1", or None. It `is_well` if these are "all", no replica is missing and
    `min.insync.replicas` are in sync.
    """

    topic: str
    partition: int
    leader: int | None
    replicas: list[int]
    isr: list[int]
    missing: list[int]
    max_lag: int | None
    silent_replicas: list[int]
    acks: str | None
    is_well: bool

    @property
    def lag(self) -> Lag:
        return Lag(self.max_lag, self.silent_replicas)


class ClusterStatus(NamedTuple):
    """A cluster at a glance; the lag is that of the last voter, in records of the metadata log.

    The broker at `metadata_from` tells all of it, by the metadata log up to `metadata_offset` (-1: it does
    not tell). Without a quorum, leader and lag are missing, epoch and voters are those that this broker
    knows, and the rest is as old as `metadata_age_ms`; None if it does not tell. `silent_voters` do not
    answer.

    If no broker answers, `metadata_from` is None: the brokers are those of the folder, a controller tells of
    the quorum, and topics and partitions are unknown, hence empty.
    """

    cluster_id: str
    has_quorum: bool
    leader_id: int | None
    leader_epoch: int | None
    voters: list[int] | None
    max_follower_lag: int | None
    metadata_from: str | None
    metadata_offset: int
    metadata_age_ms: int | None
    silent_voters: list[int] | None
    brokers: list[BrokerStatus]
    topics: list[TopicStatus]
    partitions: list[PartitionStatus]


class Shown(NamedTuple):
    """What to show besides topics with missing replicas."""

    all_topics: bool
    lacking_partitions: bool
    all_partitions: bool


@click.command()
@click.option(
    "--topics",
    "with_topics",
    is_flag=True,
    help="Show all topics, and the partitions that lack something.",
)
@click.option("--partitions", "with_partitions", is_flag=True, help="Show all topics and all partitions.")
@click.option(
    "--watch",
    "watch_s",
    is_flag=False,
    flag_value=WATCH_S,
    type=Seconds(0.1),
    metavar="[SECONDS]",
    help="Show it again and again, every two seconds or as often as said, until Ctrl-C.",
)
@folder_option
@cluster_options
@json_option(ClusterStatus)
@click.pass_context
def status(
    ctx: click.Context,
    with_topics: bool,
    with_partitions: bool,
    watch_s: float | None,
    folder: Path,
    cluster: Cluster,
    output: Output,
) -> int:
    """Show the quorum, the brokers, and the partitions that lack replicas, of any cluster.

    It is the one at --bootstrap-server; if none is named, the one in the folder, if there is one.
    """
    local = _local(ctx, folder)
    if local is not None:
        cluster = cluster._replace(bootstrap_server=_servers(local) or cluster.bootstrap_server)
    shown = Shown(with_topics or with_partitions, with_topics or with_partitions, with_partitions)
    if watch_s is None:
        return _show(cluster, local, output, shown)
    with Interrupts() as interrupts:
        try:
            while True:
                with interrupts.waiting():
                    _watch(cluster, local, output, shown)
                    time.sleep(watch_s)
        except KeyboardInterrupt:
            return interrupts.exit_status


def _local(ctx: click.Context, folder: Path) -> ClusterFolder | None:
    """The cluster in the folder, if no brokers are named and there is one.

    Raises:
        click.UsageError, click.ClickException: both are named, or there is no cluster in the folder.
    """
    is_named = ctx.get_parameter_source("folder") is ParameterSource.COMMANDLINE
    source = ctx.get_parameter_source("bootstrap_server")
    if is_named and source is ParameterSource.COMMANDLINE:
        raise click.UsageError("Give either --bootstrap-server or --data-dir.")
    if source is not ParameterSource.DEFAULT and not is_named:
        return None
    found = ClusterFolder(folder.absolute())
    if not found.exists():
        if is_named:
            raise click.ClickException(f"There is no cluster in {folder}")
        return None
    return found


def _servers(local: ClusterFolder) -> str:
    """The brokers of a local cluster, serving nodes first."""
    brokers = [node for node in states_of(local) if "broker" in node.roles]
    return ",".join(node.address for node in sorted(brokers, key=lambda node: node.state != "up"))


def _watch(cluster: Cluster, local: ClusterFolder | None, output: Output, shown: Shown) -> None:
    """Show the status in place of the last one; a cluster that does not answer may do so next time."""
    if output.form is Form.TABLES:
        click.clear()
    try:
        _show(cluster, local, output, shown)
    except (OSError, KafkaError, ProtocolError) as error:
        output.note(f"{error}")


def _show(cluster: Cluster, local: ClusterFolder | None, output: Output, wanted: Shown) -> int:
    try:
        with cluster.connect() as client:
            found, lost = client.retrying(lambda: _status(client, cluster))
    except OSError as error:
        if local is None:
            error.add_note(ASK_CONTROLLERS)
            raise
        return _show_unserved(local, cluster, output)
    topics = [topic for topic in found.topics if wanted.all_topics or _lacks(topic, found)]
    partitions = [
        one
        for one in found.partitions
        if wanted.all_partitions or (wanted.lacking_partitions and not one.is_well)
    ]
    output.show(found, _lines(found, topics, partitions), _tables(found, topics, partitions))
    if lost is None:
        return 0
    source = Source(found.metadata_from or "", found.metadata_offset)
    takes = taken_now([one.acks for one in found.partitions])
    output.note(f"{told_of_loss(lost, source, found.silent_voters)} {takes}")
    return NO_QUORUM


def _show_unserved(local: ClusterFolder, cluster: Cluster, output: Output) -> int:
    """Show what the folder, its processes and its controllers tell while no broker answers."""
    states = states_of(local)
    controllers = {
        state.node_id: local.controller_address(state.node_id)
        for state in states
        if "controller" in state.roles
    }
    asked = cluster._replace(bootstrap_controller=",".join(controllers.values())).within(QUORUM_WITHIN_S)
    with asked.connect() as client:
        quorum = look(client) or LostQuorum()
        told_by = client.asked if isinstance(client, Controllers) else ""
    brokers = [
        BrokerStatus(state.node_id, "silent", state.address, None, None, None, None)
        for state in states
        if "broker" in state.roles
    ]
    leader_id: int | None = None
    epoch: int | None
    silent = lag = None
    why = "No controller answers."
    is_led = isinstance(quorum, QuorumStatus)
    if isinstance(quorum, QuorumStatus):
        leader_id, epoch, voters, lag = quorum
        why = f"Node {leader_id} leads the quorum."
    else:
        known = quorum.voters or {node_id: [parse_address(at)] for node_id, at in controllers.items()}
        quorum = quorum._replace(voters=known)
        epoch, voters, silent = quorum.leader_epoch, sorted(known), silent_voters(quorum, ())
        if told_by:
            reason = why_nothing_changes(quorum, Source(told_by), silent)
            why = f"{reason[0].upper()}{reason[1:]}"
    of_quorum = (is_led, leader_id, epoch, voters, lag)
    found = ClusterStatus(local.cluster_id, *of_quorum, None, -1, None, silent, brokers, [], [])
    output.show(found, _lines(found, [], []), _tables(found, [], []))
    nodes = ", ".join(
        f"node {one.node_id} {'has ' if one.pid is None else 'is '}{one.state}"
        + ("" if one.pid is None else f" (process {one.pid})")
        for one in states
    )
    output.note(
        "No broker answers, and only brokers tell of topics, partitions and the epoch of a quorum without a "
        f"leader. {nodes.capitalize()}. {why}"
    )
    return NO_QUORUM if told_by and not is_led else 1


def _status(client: Client, cluster: Cluster) -> tuple[ClusterStatus, LostQuorum | None]:
    """The cluster, and the state of its quorum if that has no leader."""
    metadata = client.metadata(None)
    for topic in metadata.topics:
        check(topic.error_code)
    cluster_id, found = broker_statuses(client, metadata.topics)
    least = _least_in_sync(client, [topic.name or "" for topic in metadata.topics])

    def connect() -> Client:
        """A client for those who may not answer."""
        asked = cluster.within(QUORUM_WITHIN_S).at(client.connection().peer).connect()
        asked.brokers.addresses.update(client.brokers.addresses)
        return asked

    with connect() as asked:
        quorum = quorum_status(asked)
        lost = quorum if isinstance(quorum, LostQuorum) else None
        ongoing = {} if lost else reassignments_as_told(asked)
    up = [broker.broker_id for broker in found if broker.state == "up"]
    ends, answering = log_ends(connect, up, metadata.topics)
    topics = sorted(metadata.topics, key=lambda topic: str(topic.name))
    led: tuple[int | None, int | None, list[int] | None, int | None] = (None, None, None, None)
    if isinstance(quorum, QuorumStatus):
        led = quorum
    elif quorum.voters is not None:
        led = (None, quorum.leader_epoch, sorted(quorum.voters), None)
    asked_of = client.connection()
    whole = ClusterStatus(
        cluster_id,
        lost is None,
        *led,
        asked_of.peer,
        asked_of.metadata_offset,
        None if lost is None else lost.age_ms,
        None if lost is None else silent_voters(lost, answering),
        with_silent(found, answering),
        [
            _as_told_before(status) if lost else status
            for topic in topics
            for status in (topic_status(topic, least[topic.name or ""], ends, ongoing),)
        ],
        [
            one
            for topic in topics
            for one in partition_statuses(topic, least[topic.name or ""], ends, ongoing, answering)
        ],
    )
    return whole, lost


def topic_status(topic: Any, least: int, ends: Ends, ongoing: Mapping[PartitionKey, Ongoing]) -> TopicStatus:
    """Count the partitions of a topic whose `min.insync.replicas` is `least`."""
    partitions = topic.partitions
    factors = [
        replication_factor(one.replica_nodes, ongoing.get((topic.name, one.partition_index)))
        for one in partitions
    ]
    return TopicStatus(
        topic.name,
        len(partitions),
        sum(len(one.isr_nodes) < factor for one, factor in zip(partitions, factors, strict=True)),
        sum(len(one.isr_nodes) == least for one in partitions),
        sum(len(one.isr_nodes) < least for one in partitions),
        sum(one.leader_id < 0 for one in partitions),
        *greatest(partition_lag(topic.name, one, ends) for one in partitions),
    )


def _as_told_before(status: TopicStatus) -> TopicStatus:
    """The same without the counts that date from before the quorum was lost."""
    return status._replace(under_replicated=None, at_min_isr=None, under_min_isr=None, offline=None)


def partition_statuses(
    topic: Any, least: int, ends: Ends, ongoing: Mapping[PartitionKey, Ongoing], answering: Collection[int]
) -> Iterator[PartitionStatus]:
    """The partitions of a topic in order; only brokers in `answering` can lead them."""
    for one in sorted(topic.partitions, key=lambda one: int(one.partition_index)):
        moving = ongoing.get((topic.name, one.partition_index))
        adding = moving.adding if moving else []
        missing = [node for node in one.replica_nodes if node not in one.isr_nodes and node not in adding]
        acks = strongest_acks(one.leader_id, one.replica_nodes, one.isr_nodes, least, answering)
        yield PartitionStatus(
            topic.name,
            one.partition_index,
            None if one.leader_id < 0 else one.leader_id,
            list(one.replica_nodes),
            list(one.isr_nodes),
            missing,
            *partition_lag(topic.name, one, ends),
            acks,
            is_well=acks == "all" and not missing and len(one.isr_nodes) >= least,
        )


def _least_in_sync(client: Client, topics: Sequence[str]) -> dict[str, int]:
    """The `min.insync.replicas` of topics."""
    from pykafka_broker.protocol.messages.describe_configs import (
        DescribeConfigsRequest,
        DescribeConfigsResource,
    )

    if not topics:
        return {}
    asked = [
        DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=[MIN_ISR])
        for name in topics
    ]
    least = {}
    for result in client.send(DescribeConfigsRequest(resources=asked)).results:
        check(result.error_code, result.error_message)
        least[result.resource_name] = int(result.configs[0].value)
    return least


def _lacks(topic: TopicStatus, found: ClusterStatus) -> bool:
    if not found.has_quorum:
        return any(one.topic == topic.topic and not one.is_well for one in found.partitions)
    return bool(topic.under_replicated or topic.under_min_isr or topic.offline)


def _totals(topics: Sequence[TopicStatus]) -> list[tuple[str, int | str]]:
    return [
        ("Topics", len(topics)),
        ("Partitions", sum(topic.partitions for topic in topics)),
        ("UnderReplicated", _total(topic.under_replicated for topic in topics)),
        ("AtMinIsr", _total(topic.at_min_isr for topic in topics)),
        ("UnderMinIsr", _total(topic.under_min_isr for topic in topics)),
        ("Offline", _total(topic.offline for topic in topics)),
        ("MaxLag", f"{greatest(topic.lag for topic in topics)}"),
    ]


def _total(counts: Iterable[int | None]) -> int | str:
    total = 0
    for count in counts:
        if count is None:
            return or_unknown(None)
        total += count
    return total


def _told(number: int | None) -> int | str:
    return "" if number is None else number


def _lines(
    found: ClusterStatus, topics: Sequence[TopicStatus], partitions: Sequence[PartitionStatus]
) -> Iterator[Line]:
    yield f"ClusterId: {found.cluster_id}"
    if not found.has_quorum:
        yield (
            f"Quorum: none\tVoters: {_joined(found.voters or ())}\t"
            f"Silent: {_joined(found.silent_voters or ())}\tMetadataFrom: {found.metadata_from or ''}\t"
            f"MetadataOffset: {found.metadata_offset}\tMetadataAgeMs: {_told(found.metadata_age_ms)}"
        )
    else:
        assert found.voters is not None
        yield (
            f"Quorum: LeaderId: {found.leader_id}\tLeaderEpoch: {found.leader_epoch}\t"
            f"Voters: {','.join(map(str, found.voters))}\tMaxFollowerLag: {found.max_follower_lag}"
        )
    yield from broker_lines(found.brokers)
    if found.metadata_from is not None:
        yield "\t".join(f"{name}: {count}" for name, count in _totals(found.topics))
    for topic in topics:
        yield (
            f"Topic: {topic.topic}\tPartitions: {topic.partitions}\t"
            f"UnderReplicated: {or_unknown(topic.under_replicated)}\t"
            f"AtMinIsr: {or_unknown(topic.at_min_isr)}\tUnderMinIsr: {or_unknown(topic.under_min_isr)}\t"
            f"Offline: {or_unknown(topic.offline)}\tMaxLag: {topic.lag}"
        )
        for one in partitions:
            if one.topic == topic.topic:
                leader = "none" if one.leader is None else one.leader
                yield (
                    f"\tTopic: {one.topic}\tPartition: {one.partition}\tLeader: {leader}\t"
                    f"Replicas: {_joined(one.replicas)}\t"
                    f"Isr: {_joined(one.isr)}\tMissing: {_joined(one.missing)}\t"
                    f"MaxLag: {one.lag}\tAcks: {one.acks or ''}"
                )


def _joined(nodes: Sequence[int]) -> str:
    return ",".join(map(str, nodes))


def _tables(
    found: ClusterStatus, topics: Sequence[TopicStatus], partitions: Sequence[PartitionStatus]
) -> Iterator[Table]:
    details: list[tuple[str, Cell]] = [
        ("cluster", found.cluster_id),
        ("leader of the quorum", found.leader_id if found.has_quorum else Styled("none", "bold red")),
    ]
    if found.voters is not None:
        details += [("epoch", found.leader_epoch), ("voters", ", ".join(map(str, found.voters)))]
    if found.has_quorum:
        details.append(("lag", found.max_follower_lag))
    elif found.metadata_from is not None:
        age = "" if found.metadata_age_ms is None else f", {found.metadata_age_ms // 1_000:,} s ago"
        details.append(("known from", f"{found.metadata_from} at offset {found.metadata_offset}{age}"))
    said = None
    if found.metadata_from is not None:
        said = ", ".join(f"{name} {count}" for name, count in _totals(found.topics))
    yield broker_table(found.brokers, details, said)
    if topics:
        numbers = ("PARTITIONS", "UNDER REPLICATED", "AT MIN ISR", "UNDER MIN ISR", "OFFLINE", "MAX LAG")
        yield Table(
            (Column("TOPIC"), *(Column(title, is_number=True) for title in numbers)),
            [
                (topic.topic, topic.partitions, *map(or_unknown, topic[2:6]), f"{topic.lag}")
                for topic in topics
            ],
        )
    if partitions:
        yield Table(
            (
                Column("TOPIC"),
                Column("PARTITION", is_number=True),
                Column("LEADER", is_number=True),
                Column("REPLICAS", drop=1),
                Column("ISR"),
                Column("MISSING"),
                Column("MAX LAG", is_number=True),
                Column("ACKS"),
            ),
            [
                (
                    one.topic,
                    one.partition,
                    Styled("none", "red") if one.leader is None else one.leader,
                    _joined(one.replicas),
                    Styled(_joined(one.isr), "" if one.is_well else "yellow"),
                    _joined(one.missing),
                    f"{one.lag}",
                    one.acks,
                )
                for one in partitions
            ],
        )
