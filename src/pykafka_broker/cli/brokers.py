"""`brokers`: the brokers of a cluster, what they hold, and how to forget one."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import click

from pykafka_broker.cli import Group
from pykafka_broker.cli.cells import Cell, Column, Line, Styled, Table
from pykafka_broker.cli.cluster import (
    Cluster,
    cluster_options,
    cluster_or_controller_options,
    loss_of,
    why_unanswered,
)
from pykafka_broker.cli.names import broker_ids
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.cli.wording import human_size
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import check
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.wording import counted, listed

#: The most partitions that are named of those that a broker still holds.
NAMED = 5
#: How often to look for reasons against forgetting a broker, and the pause between two looks.
LOOKS, LOOK_S = 5, 0.2


class BrokerStatus(NamedTuple):
    """A broker; `state` is "up", "fenced" or "silent": it counts as up, but did not answer when asked.
    `leaders` and `in_sync` count partitions; None for a silent broker, because the numbers are old.
    `replicas` is None if no broker answers.
    """

    broker_id: int
    state: str
    address: str
    rack: str | None
    leaders: int | None
    replicas: int | None
    in_sync: int | None


class BrokerLogDir(NamedTuple):
    """A log directory of a broker; `state` is "online", "cordoned" or "offline". The sizes, of the replicas
    in it and of its disk, are in bytes; null if the broker does not tell.
    """

    broker_id: int
    log_dir: str
    state: str
    replicas: int
    replica_bytes: int
    usable_bytes: int | None
    total_bytes: int | None


class Unregistered(NamedTuple):
    """A broker that the cluster has forgotten."""

    broker_id: int


@click.group(cls=Group)
def brokers() -> None:
    """List brokers and their disks, and forget brokers that will not come back."""


@brokers.command("list")
@cluster_options
@json_option(BrokerStatus, key="brokers")
def list_(cluster: Cluster, output: Output) -> None:
    """List the brokers, and how many partitions they lead and hold."""
    with cluster.connect() as client:
        metadata = client.metadata(None)
        _, found = broker_statuses(client, metadata.topics)
        loss = loss_of(cluster, client)
    if loss is not None:
        found = with_silent(found, _answering(cluster, found))
    output.show_all(found, broker_lines(found), [broker_table(found)])
    if loss is not None:
        output.note(loss)


def _answering(cluster: Cluster, found: Sequence[BrokerStatus]) -> set[int]:
    """Which of these brokers answer: metadata does not tell."""
    from pykafka_broker.client.quorum import QUORUM_WITHIN_S
    from pykafka_broker.doctor.reach import all_at_once

    def answers(broker: BrokerStatus) -> bool:
        try:
            with cluster.connect_to(broker.address, min(cluster.timeout_s, QUORUM_WITHIN_S)) as client:
                client.connection()
        except (OSError, KafkaError, ProtocolError):
            return False
        return True

    told = all_at_once(answers, found)
    return {broker.broker_id for broker, is_there in zip(found, told, strict=True) if is_there}


@brokers.command("disks")
@click.argument("broker_ids", nargs=-1, type=int, metavar="[ID…]", shell_complete=broker_ids)
@cluster_options
@json_option(BrokerLogDir, key="log_dirs")
def disks(broker_ids: Sequence[int], cluster: Cluster, output: Output) -> None:
    """Show the log directories of brokers that are up: their state, their replicas and their room."""
    with cluster.connect() as client:
        known = client.metadata([]).brokers
        ids = broker_ids or sorted(broker.node_id for broker in known)
        found = [one for broker_id in ids for one in log_dirs(client, broker_id)]
    output.show_all(found, _disk_lines(found), [disk_table(found)])


@brokers.command("unregister")
@click.argument("broker_id", type=int, metavar="ID", shell_complete=broker_ids)
@click.option("--force", is_flag=True, help="Also a broker that is up, or holds replicas.")
@cluster_or_controller_options
@json_option(Unregistered)
def unregister(broker_id: int, force: bool, cluster: Cluster, output: Output) -> None:
    """Have the cluster forget a broker that has stopped and will not come back.

    Without --force the broker must be down and hold no replica. The replicas of a forgotten broker stay
    assigned to it. A broker that still runs serves nothing from then on, until it is restarted.
    --bootstrap-controller needs --force, because controllers do not tell who holds replicas.
    """
    from pykafka_broker.protocol.messages.unregister_broker import UnregisterBrokerRequest

    if cluster.bootstrap_controller is not None and not force:
        raise click.UsageError(
            "Controllers do not tell which replicas a broker holds: name a broker with --bootstrap-server, "
            "or give --force."
        )
    with cluster.connect() as client:
        if not force:
            if why := why_unanswered(cluster):
                raise click.ClickException(f"Broker {broker_id} stays registered; {why}")
            if reason := _why_it_stays(client, broker_id):
                raise click.ClickException(reason)
        answer = client.send(UnregisterBrokerRequest(broker_id=broker_id))
    check(answer.error_code, answer.error_message)
    output.show(Unregistered(broker_id), [f"Broker {broker_id} is no longer registered."])


def why_it_stays(broker_id: int, *, is_up: bool, held: Sequence[str]) -> str:
    """Why a broker should not be forgotten yet, and what to do first; "" if there is no reason. `held` are
    the partitions that it holds.
    """
    states, steps = [], []
    if is_up:
        states.append("is up")
        steps.append(
            "Stop it; one that was killed counts as up until its session ends (broker.session.timeout.ms)."
        )
    if held:
        states.append(f"holds {counted(len(held), 'replica')} ({listed([*held], NAMED)})")
        steps.insert(
            0,
            "Move its replicas away:\n"
            f"  pykafka-broker reassign plan --without {broker_id} --output-file moves.json\n"
            "  pykafka-broker reassign run moves.json --wait",
        )
    if not states:
        return ""
    way = "\n".join([*steps, "With --force it is forgotten as it is."])
    return f"Broker {broker_id} {' and '.join(states)}.\n{way}"


def _why_it_stays(client: Client, broker_id: int) -> str:
    """The same, looked up several times: the broker asked may not know of a stop or a move yet."""
    reason = ""
    for _ in range(LOOKS):
        topics = client.metadata(None).topics
        _, found = broker_statuses(client, ())
        state = next((broker.state for broker in found if broker.broker_id == broker_id), None)
        held = sorted(
            f"{topic.name}-{partition.partition_index}"
            for topic in topics
            for partition in topic.partitions
            if broker_id in partition.replica_nodes
        )
        # If it is not registered, the controller says so.
        reason = "" if state is None else why_it_stays(broker_id, is_up=state == "up", held=held)
        if not reason:
            break
        time.sleep(LOOK_S)
    return reason


# -- what brokers are there --------------------------------------------------------------------------------


def broker_statuses(client: Client, topics: Sequence[Any]) -> tuple[str, list[BrokerStatus]]:
    """The cluster id, and the brokers in the order of their ids; `topics` are those of a Metadata answer."""
    from pykafka_broker.doctor.brokers import registered

    described = registered(client)
    partitions = [partition for topic in topics for partition in topic.partitions]
    return described.cluster_id, [
        BrokerStatus(
            broker.broker_id,
            "fenced" if broker.is_fenced else "up",
            f"{broker.host}:{broker.port}",
            broker.rack,
            sum(partition.leader_id == broker.broker_id for partition in partitions),
            sum(broker.broker_id in partition.replica_nodes for partition in partitions),
            sum(broker.broker_id in partition.isr_nodes for partition in partitions),
        )
        for broker in sorted(described.brokers, key=lambda broker: int(broker.broker_id))
    ]


def with_silent(found: Sequence[BrokerStatus], answering: Collection[int]) -> list[BrokerStatus]:
    """The same brokers; those that count as up but are not among `answering` are silent."""
    return [
        broker._replace(state="silent", leaders=None, in_sync=None)
        if broker.state == "up" and broker.broker_id not in answering
        else broker
        for broker in found
    ]


def broker_lines(found: Sequence[BrokerStatus]) -> Iterator[Line]:
    """One line for each broker."""
    for broker in found:
        yield (
            f"Broker: {broker.broker_id}\tState: {broker.state}\tAddress: {broker.address}\t"
            f"Rack: {broker.rack or ''}\tLeaders: {or_unknown(broker.leaders)}\t"
            f"Replicas: {or_unknown(broker.replicas)}\tInSync: {or_unknown(broker.in_sync)}"
        )


def broker_table(
    found: Sequence[BrokerStatus], details: Sequence[tuple[str, Cell]] = (), footer: str | None = None
) -> Table:
    """One row for each broker."""
    columns = (
        Column("BROKER", is_number=True),
        Column("STATE"),
        Column("ADDRESS"),
        Column("RACK", drop=2),
        Column("LEADERS", is_number=True, drop=1),
        Column("REPLICAS", is_number=True, drop=3),
        Column("IN SYNC", is_number=True, drop=4),
    )
    rows = [
        (
            broker.broker_id,
            _coloured(broker.state, broker.state == "up"),
            broker.address,
            broker.rack,
            or_unknown(broker.leaders),
            broker.replicas,
            or_unknown(broker.in_sync),
        )
        for broker in found
    ]
    return Table(columns, rows, details=details, footer=footer)


def or_unknown(count: int | None) -> int | str:
    """A count, or "unknown"."""
    return "unknown" if count is None else count


def _coloured(state: str, is_well: bool) -> Styled:
    return Styled(state, "green" if is_well else "red")


# -- what they hold ----------------------------------------------------------------------------------------


def log_dirs(client: Client, broker_id: int) -> Iterator[BrokerLogDir]:
    """The log directories of a broker.

    Raises:
        KafkaError: the broker does not tell this client.
    """
    from pykafka_broker.protocol.messages.describe_log_dirs import DescribeLogDirsRequest

    answer = client.send(DescribeLogDirsRequest(topics=None), broker_id)
    check(answer.error_code)
    for result in sorted(answer.results, key=lambda result: str(result.log_dir)):
        error = ErrorCode(result.error_code)
        if error not in (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR):
            raise KafkaError(error, f"broker {broker_id}: {result.log_dir}: {error.message}")
        replicas = [partition for topic in result.topics for partition in topic.partitions]
        online = "cordoned" if result.is_cordoned else "online"
        yield BrokerLogDir(
            broker_id,
            result.log_dir,
            "offline" if error else online,
            len(replicas),
            sum(replica.partition_size for replica in replicas),
            _told(result.usable_bytes),
            _told(result.total_bytes),
        )


def _told(size_bytes: int) -> int | None:
    return None if size_bytes < 0 else size_bytes


def _disk_lines(found: Sequence[BrokerLogDir]) -> Iterator[Line]:
    for one in found:
        usable = "" if one.usable_bytes is None else one.usable_bytes
        total = "" if one.total_bytes is None else one.total_bytes
        yield (
            f"Broker: {one.broker_id}\tLogDir: {one.log_dir}\tState: {one.state}\tReplicas: {one.replicas}\t"
            f"ReplicaBytes: {one.replica_bytes}\tUsableBytes: {usable}\tTotalBytes: {total}"
        )


def disk_table(found: Sequence[BrokerLogDir]) -> Table:
    """One row for each log directory."""
    columns = (
        Column("BROKER", is_number=True),
        Column("LOG DIR"),
        Column("STATE"),
        Column("REPLICAS", is_number=True, drop=2),
        Column("SIZE", is_number=True),
        Column("FREE", is_number=True),
        Column("DISK", is_number=True, drop=1),
    )
    rows = [
        (
            one.broker_id,
            one.log_dir,
            _coloured(one.state, one.state == "online"),
            one.replicas,
            *(
                None if size is None else human_size(size)
                for size in (one.replica_bytes, one.usable_bytes, one.total_bytes)
            ),
        )
        for one in found
    ]
    return Table(columns, rows)
