"""`quorum`: the metadata log's leader, voters and observers, and changes of the voters (KIP-853); lines as of
kafka-metadata-quorum.sh.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import click

from pykafka_broker.cli import Group
from pykafka_broker.cli.cells import Cell, Column, Table
from pykafka_broker.cli.cluster import Cluster, cluster_or_controller_options
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import check
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.system.named_tuple import NamedTuple

#: The titles of kafka-metadata-quorum.sh.
TITLES = (
    "NodeId",
    "DirectoryId",
    "LogEndOffset",
    "Lag",
    "LastFetchTimestamp",
    "LastCaughtUpTimestamp",
    "Status",
)


class QuorumReplica(NamedTuple):
    """A copy of the metadata log; times are milliseconds since 1970, and null before the first."""

    node_id: int
    status: str
    directory_id: str
    log_end_offset: int
    lag: int
    last_fetch_timestamp: int | None
    last_caught_up_timestamp: int | None
    endpoints: list[str]


class Quorum(NamedTuple):
    """The quorum as its leader sees it; the leader's own copy is the first."""

    cluster_id: str
    leader_id: int
    leader_epoch: int
    high_watermark: int
    max_follower_lag: int
    max_follower_lag_time_ms: int | None
    replicas: list[QuorumReplica]


class ChangedController(NamedTuple):
    """A controller added to or removed from the voters, or with `dry_run` not yet; endpoints if added."""

    controller_id: int
    directory_id: str
    endpoints: list[str]
    dry_run: bool


@click.group(cls=Group)
def quorum() -> None:
    """Describe the quorum of controllers behind the metadata, and change its voters."""


@quorum.command()
@click.option("--replication", is_flag=True, help="How much of the log each voter and observer has.")
@cluster_or_controller_options
@json_option(Quorum)
def describe(replication: bool, cluster: Cluster, output: Output) -> None:
    """Describe who leads the metadata log and who votes."""
    with cluster.connect() as client:
        found = described_quorum(client)
    lines = _replication(found.replicas) if replication else _status(found)
    output.show(found, lines, [quorum_table(found)])


def described_quorum(client: Client) -> Quorum:
    """The quorum, by its leader.

    Raises:
        KafkaError, OSError: there is no leader, it does not answer, or it refuses.
    """
    from pykafka_broker.client.quorum import describe_quorum

    cluster_id = client.cluster_id()
    answer = describe_quorum(client)
    return _quorum(cluster_id, answer.topics[0].partitions[0], answer.nodes)


@quorum.command("add-controller")
@click.option(
    "-c",
    "--config",
    "file",
    metavar="FILE",
    required=True,
    help="The server.properties file of the controller.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be added.")
@cluster_or_controller_options
@json_option(ChangedController)
def add_controller(file: str, dry_run: bool, cluster: Cluster, output: Output) -> None:
    """Make a controller a voter; it has to run, and to have caught up.

    Run this on the machine with its directories: they have its directory id.
    """
    from pykafka_broker.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener

    node_id, directory_id, endpoints = _controller_of(file)
    request = AddRaftVoterRequest(
        cluster_id=None,
        timeout_ms=int(cluster.timeout_s * 1000),
        voter_id=node_id,
        voter_directory_id=directory_id,
        listeners=[Listener(name=name, host=host, port=port) for name, host, port in endpoints],
    )
    if not dry_run:
        _change(request, cluster)
    added = ChangedController(
        node_id,
        uuid_text(directory_id),
        [f"{name}://{_bracketed(host)}:{port}" for name, host, port in endpoints],
        dry_run,
    )
    output.show(
        added,
        [
            f"{'DRY RUN of adding' if dry_run else 'Added'} controller {node_id} with directory id "
            f"{added.directory_id} and endpoints: {', '.join(added.endpoints)}"
        ],
    )


def _controller_of(file: str) -> tuple[int, bytes, list[tuple[str, str, int]]]:
    """The id of a controller, that of its metadata directory, and its endpoints, by its configuration.

    Raises:
        click.ClickException: it is no controller's, or its directory is not formatted.
    """
    from pykafka_broker.config.sources import load_config
    from pykafka_broker.log.disk.checkpoints import MalformedFile, decode_meta_properties
    from pykafka_broker.log.disk.files import OsFileSystem, join
    from pykafka_broker.log.disk.names import META_PROPERTIES

    config = load_config(file=file, environ=os.environ)
    if "controller" not in config.process_roles:
        raise click.ClickException(f"process.roles in {file} has no controller.")
    path = join(config.metadata_log_dir, META_PROPERTIES)
    try:
        directory_id = decode_meta_properties(OsFileSystem().read_file(path)).directory_id
    except (OSError, MalformedFile) as error:
        raise click.ClickException(
            f"{path} cannot be read: {error}. Has the directory been formatted?"
        ) from None
    if directory_id is None:
        raise click.ClickException(f"{path} has no directory id. Start the controller, which gives it one.")
    told = config.advertised_controller_listeners or config.controller_listeners
    return config.node_id, directory_id, [(e.name, e.host or "localhost", e.port) for e in told]


@quorum.command("remove-controller")
@click.option(
    "-i", "--id", "controller_id", type=int, metavar="ID", required=True, help="The id of its node."
)
@click.option("-d", "--directory-id", metavar="UUID", required=True, help="The id of its directory.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@cluster_or_controller_options
@json_option(ChangedController)
def remove_controller(
    controller_id: int, directory_id: str, dry_run: bool, cluster: Cluster, output: Output
) -> None:
    """Let a controller vote no more; `describe` tells its directory id.

    One with controller.quorum.auto.join.enable has to be stopped first, or it joins again.
    """
    from pykafka_broker.log.disk.checkpoints import MalformedFile, uuid_bytes
    from pykafka_broker.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest

    try:
        directory = uuid_bytes(directory_id)
    except MalformedFile as error:
        raise click.BadParameter(str(error), param_hint="--directory-id") from None
    request = RemoveRaftVoterRequest(cluster_id=None, voter_id=controller_id, voter_directory_id=directory)
    if not dry_run:
        _change(request, cluster)
    output.show(
        ChangedController(controller_id, directory_id, [], dry_run),
        [
            f"{'DRY RUN of removing' if dry_run else 'Removed'} KRaft controller {controller_id} with "
            f"directory id {directory_id}"
        ],
    )


def _change(request: object, cluster: Cluster) -> None:
    """Have the quorum change its voters."""
    with cluster.connect() as client:
        answer = client.send(request)
    check(answer.error_code, answer.error_message)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _quorum(cluster_id: str, described: Any, nodes: Sequence[Any]) -> Quorum:
    endpoints = {
        node.node_id: [f"{listener.name}://{listener.host}:{listener.port}" for listener in node.listeners]
        for node in nodes
    }
    voters, observers = described.current_voters, described.observers
    leader = next(one for one in (*voters, *observers) if one.replica_id == described.leader_id)
    # Ends are equal while nothing is written. Then the last voter is the one that caught up longest ago.
    last = min(
        voters,
        key=lambda voter: (voter.log_end_offset, voter.last_caught_up_timestamp),
        default=leader,
    )
    if last is leader:
        lag_time_ms: int | None = 0
    elif min(leader.last_caught_up_timestamp, last.last_caught_up_timestamp) < 0:
        lag_time_ms = None
    else:
        lag_time_ms = leader.last_caught_up_timestamp - last.last_caught_up_timestamp

    def replica(one: Any, status: str) -> QuorumReplica:
        return QuorumReplica(
            one.replica_id,
            status,
            uuid_text(one.replica_directory_id),
            one.log_end_offset,
            leader.log_end_offset - one.log_end_offset,
            _known(one.last_fetch_timestamp),
            _known(one.last_caught_up_timestamp),
            endpoints.get(one.replica_id, []),
        )

    return Quorum(
        cluster_id,
        described.leader_id,
        described.leader_epoch,
        described.high_watermark,
        leader.log_end_offset - last.log_end_offset,
        lag_time_ms,
        [
            replica(leader, "Leader"),
            *(replica(voter, "Follower") for voter in voters if voter is not leader),
            *(replica(observer, "Observer") for observer in observers if observer is not leader),
        ],
    )


def _known(time_ms: int) -> int | None:
    return None if time_ms < 0 else time_ms


def _status(found: Quorum) -> Iterator[str]:
    lag_time_ms = -1 if found.max_follower_lag_time_ms is None else found.max_follower_lag_time_ms
    by_node = sorted(found.replicas, key=lambda replica: replica.node_id)
    observers = [replica for replica in by_node if replica.status == "Observer"]
    voters = [replica for replica in by_node if replica not in observers]
    yield f"ClusterId:              {found.cluster_id}"
    yield f"LeaderId:               {found.leader_id}"
    yield f"LeaderEpoch:            {found.leader_epoch}"
    yield f"HighWatermark:          {found.high_watermark}"
    yield f"MaxFollowerLag:         {found.max_follower_lag}"
    yield f"MaxFollowerLagTimeMs:   {lag_time_ms}"
    yield f"CurrentVoters:          [{', '.join(map(_described, voters))}]"
    yield f"CurrentObservers:       [{', '.join(map(_described, observers))}]"


def _described(replica: QuorumReplica) -> str:
    """A replica as kafka-metadata-quorum.sh writes it, which is nearly JSON."""
    parts = [f'"id": {replica.node_id}', f'"directoryId": "{replica.directory_id}"']
    if replica.endpoints:
        addresses = ", ".join(f'"{endpoint}"' for endpoint in replica.endpoints)
        parts.append(f'"endpoints": [{addresses}]')
    return "{" + ", ".join(parts) + "}"


def _replication(replicas: Sequence[QuorumReplica]) -> Iterator[str]:
    rows = [TITLES, *(tuple(map(str, _cells(replica))) for replica in replicas)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(TITLES))]
    for row in rows:
        yield "".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True))


def _cells(replica: QuorumReplica) -> tuple[int | str, ...]:
    fetched, caught_up = replica.last_fetch_timestamp, replica.last_caught_up_timestamp
    return (
        replica.node_id,
        replica.directory_id,
        replica.log_end_offset,
        replica.lag,
        -1 if fetched is None else fetched,
        -1 if caught_up is None else caught_up,
        replica.status,
    )


def quorum_table(found: Quorum) -> Table:
    """One row for each copy of the metadata log."""
    columns = (
        Column("NODE", is_number=True),
        Column("STATUS"),
        Column("LOG END OFFSET", is_number=True),
        Column("LAG", is_number=True),
        Column("ADDRESS", is_prose=True, drop=1),
        Column("DIRECTORY", is_id=True, drop=2),
    )
    rows = [
        (
            replica.node_id,
            replica.status,
            replica.log_end_offset,
            replica.lag,
            ", ".join(replica.endpoints),
            replica.directory_id,
        )
        for replica in found.replicas
    ]
    details: list[tuple[str, Cell]] = [
        ("cluster", found.cluster_id),
        ("leader", found.leader_id),
        ("epoch", found.leader_epoch),
        ("high watermark", found.high_watermark),
    ]
    return Table(columns, rows, details=details)
