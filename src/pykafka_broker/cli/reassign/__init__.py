"""`reassign`: move partitions to other brokers; lines as of kafka-reassign-partitions.sh, whose files it
reads and writes.

    planning.py    which replicas move; plan_file.py: the JSON of a plan (both pure)
    moves.py       what a cluster is asked
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from pykafka_broker.cli import Group
from pykafka_broker.cli.cluster import Cluster, cluster_options, cluster_or_controller_options, loss_of
from pykafka_broker.cli.names import broker_id_lists, topic_names
from pykafka_broker.cli.options import list_option
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.cli.reassign import moves, plan_file
from pykafka_broker.cli.reassign.planning import PlanError, brokers_of, copied, named, plan
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import check
from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.system.named_tuple import NamedTuple

#: How often `--wait` looks.
LOOK_EVERY_S = 0.5
#: A slower throttle would let replicas fall behind what is written (Kafka's tool has no limit).
LEAST_THROTTLE = 1_000

Plan = Mapping[TopicPartition, Sequence[int]]


class PlannedPartition(NamedTuple):
    """A partition that a plan changes: its replicas now and then, and the brokers that get a copy."""

    topic: str
    partition: int
    current_replicas: list[int]
    replicas: list[int]
    copied_to: list[int]


class MovedPartition(NamedTuple):
    """A partition of a plan, with the replicas that it has now.

    `state` is "started", "cancelled", "completed", "in progress" or "other replicas".
    """

    topic: str
    partition: int
    state: str
    replicas: list[int]


class MovingPartition(NamedTuple):
    """A partition that is being reassigned."""

    topic: str
    partition: int
    replicas: list[int]
    adding_replicas: list[int]
    removing_replicas: list[int]


@click.group(cls=Group)
def reassign() -> None:
    """Move partitions to other brokers."""


# -- plans -----------------------------------------------------------------------------------------------


@reassign.command("plan")
@click.argument("topics", nargs=-1, metavar="[TOPIC…]", shell_complete=topic_names)
@list_option(
    "--brokers",
    metavar="ID,…",
    shell_complete=broker_id_lists,
    callback=lambda _c, _p, text: _ids(text),
    help="Only to these brokers [all].",
)
@list_option(
    "--without",
    "--remove",
    metavar="ID,…",
    shell_complete=broker_id_lists,
    callback=lambda _c, _p, text: _ids(text),
    help="To none of these brokers.",
)
@click.option("-r", "--replication-factor", type=click.IntRange(1), help="Replicas of each [as many as now].")
@click.option(
    "-o", "--output-file", metavar="FILE", type=click.Path(dir_okay=False), help="Where to write the plan."
)
@cluster_options
@json_option(PlannedPartition, key="partitions")
def make_plan(
    topics: tuple[str, ...],
    brokers: tuple[int, ...] | None,
    without: tuple[int, ...] | None,
    replication_factor: int | None,
    output_file: str | None,
    cluster: Cluster,
    output: Output,
) -> None:
    """Plan on which brokers partitions should be, moving as few replicas as possible.

    Without topics, plan all of them. Spread the partitions evenly over all brokers, or over those that
    --brokers and --without leave.
    """
    with cluster.connect() as client:
        places = moves.racks(client)
        for broker in (*(brokers or ()), *(without or ())):
            if broker not in places and broker in (brokers or ()):
                raise click.ClickException(f"Broker {broker} is not alive.")
        wanted_on = {
            broker: rack
            for broker, rack in places.items()
            if (brokers is None or broker in brokers) and broker not in (without or ())
        }
        current = moves.assignment(client, topics or None)
        if (loss := loss_of(cluster, client)) is not None:
            output.note(loss)
    try:
        changed = plan(current, wanted_on, replication_factor)
    except PlanError as error:
        raise click.ClickException(str(error)) from None
    text = plan_file.written(changed)
    if output_file is not None:
        Path(output_file).write_text(text + "\n")
        output.note(
            f"{len(changed)} partitions change; `pykafka-broker reassign run {output_file}` moves them"
        )
    before = {partition: current[partition] for partition in changed}
    output.show_all(
        [
            PlannedPartition(
                partition.topic,
                partition.partition,
                list(current[partition]),
                list(replicas),
                copied(current[partition], replicas),
            )
            for partition, replicas in changed.items()
        ],
        [
            "Current partition replica assignment",
            plan_file.written(before),
            "",
            "Proposed partition reassignment configuration",
            text,
        ],
    )


def _ids(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is no list of broker ids like 1,2,3") from None


def _read(file: str) -> dict[TopicPartition, tuple[int, ...]]:
    try:
        return plan_file.parsed(Path(file).read_text())
    except (plan_file.PlanFileError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{file} is no plan: {error}.") from None


# -- moves -----------------------------------------------------------------------------------------------


@reassign.command("run")
@click.argument("file", metavar="PLAN.json")
@click.option(
    "--throttle",
    type=click.IntRange(LEAST_THROTTLE),
    metavar="BYTES",
    help="Copy at most this many bytes a second on each broker.",
)
@click.option("--additional", is_flag=True, help="Beside reassignments that are under way.")
@click.option("--wait", is_flag=True, help="Return when all partitions have moved, and end the throttle.")
@cluster_options
@json_option(MovedPartition, key="partitions")
def run(
    file: str, throttle: int | None, additional: bool, wait: bool, cluster: Cluster, output: Output
) -> None:
    """Move partitions as a plan says."""
    wanted = _read(file)
    timeout_ms = int(cluster.timeout_s * 1000)
    with cluster.connect() as client:
        _check_brokers(client, wanted)
        current = moves.assignment(client, sorted({partition.topic for partition in wanted}))
        for partition in wanted:
            if partition not in current:
                raise click.ClickException(f"Partition {named([partition])} does not exist.")
        under_way = moves.ongoing(client, timeout_ms)
        if under_way and not additional:
            raise click.ClickException(
                "Cannot execute because there is an existing partition assignment. "
                "Use --additional to override this."
            )
        before = {partition: current[partition] for partition in wanted}
        output.note(f"To go back: reassign run a file with {plan_file.written(before)}")
        # A topic has one list of throttled replicas, and a broker one rate: those of all moves.
        held = {**before, **{partition: one.held for partition, one in under_way.items()}}
        moving = {**{partition: one.wanted for partition, one in under_way.items()}, **wanted}
        if throttle is not None:
            moves.throttle(client, held, moving, throttle)
            output.note(
                f"The inter-broker throttle limit was set to {throttle} B/s; "
                f"`pykafka-broker reassign status {file}` takes it off when all have moved"
            )
        _raise_first(moves.reassign(client, timeout_ms, wanted))
        if wait:
            _await(client, timeout_ms, wanted)
            if throttle is not None and moves.ongoing(client, timeout_ms):
                output.note("Other partitions still move: the throttle stays")
            elif throttle is not None:
                moves.unthrottle(client, _topics(moving), sorted(moves.racks(client)))
        state = "completed" if wait else "started"
        done = [_moved(partition, state, wanted[partition]) for partition in wanted]
    line = (
        f"Reassignment of partitions {named(wanted)} is completed."
        if wait
        else f"Successfully started partition reassignments for {named(wanted)}"
    )
    output.show_all(done, [line])


def _check_brokers(client: Client, wanted: Plan) -> None:
    alive = moves.racks(client)
    unknown = [str(broker) for broker in brokers_of(wanted) if broker not in alive]
    if unknown:
        raise click.ClickException(f"Unknown broker id {', '.join(unknown)}.")


def _raise_first(errors: Mapping[TopicPartition, tuple[int, str | None]]) -> None:
    for partition, (code, message) in errors.items():
        check(code, f"{named([partition])}: {message}" if message else named([partition]))


def _await(client: Client, timeout_ms: int, wanted: Plan) -> None:
    while moves.ongoing(client, timeout_ms, wanted):
        time.sleep(LOOK_EVERY_S)


def _topics(partitions: Plan) -> list[str]:
    return sorted({partition.topic for partition in partitions})


def _moved(partition: TopicPartition, state: str, replicas: Sequence[int]) -> MovedPartition:
    return MovedPartition(partition.topic, partition.partition, state, list(replicas))


@reassign.command("status")
@click.argument("file", metavar="PLAN.json")
@click.option("--preserve-throttles", is_flag=True, help="Leave throttles when all have moved.")
@cluster_options
@json_option(MovedPartition, key="partitions")
def status(file: str, preserve_throttles: bool, cluster: Cluster, output: Output) -> None:
    """Say how far a plan is; when all partitions have moved, end its throttle."""
    wanted = _read(file)
    timeout_ms = int(cluster.timeout_s * 1000)
    with cluster.connect() as client:
        under_way = moves.ongoing(client, timeout_ms)
        current = moves.assignment(client, _topics(wanted))
        found = [
            _state(partition, wanted[partition], partition in under_way, current.get(partition, ()))
            for partition in wanted
        ]
        lines = ["Status of partition reassignment:", *(_line(one, wanted) for one in found)]
        if not under_way and not preserve_throttles:
            brokers = sorted(moves.racks(client))
            moves.unthrottle(client, _topics(wanted), brokers)
            lines += ["", f"Clearing broker-level throttles on brokers {','.join(map(str, brokers))}"]
            lines += [f"Clearing topic-level throttles on topic {topic}" for topic in _topics(wanted)]
    output.show_all(found, lines)


def _state(
    partition: TopicPartition, wanted: Sequence[int], is_under_way: bool, replicas: Sequence[int]
) -> MovedPartition:
    if is_under_way:
        return _moved(partition, "in progress", replicas)
    return _moved(partition, "completed" if tuple(replicas) == tuple(wanted) else "other replicas", replicas)


def _line(one: MovedPartition, wanted: Plan) -> str:
    name = f"{one.topic}-{one.partition}"
    if one.state == "completed":
        return f"Reassignment of partition {name} is completed."
    if one.state == "in progress":
        return f"Reassignment of partition {name} is still in progress."
    asked = wanted[TopicPartition(one.topic, one.partition)]
    return (
        f"There is no active reassignment of partition {name}, but replica set is "
        f"{','.join(map(str, one.replicas))} rather than {','.join(map(str, asked))}."
    )


@reassign.command("list")
@cluster_or_controller_options
@json_option(MovingPartition, key="partitions")
def list_(cluster: Cluster, output: Output) -> None:
    """List the partitions that are being reassigned."""
    with cluster.connect() as client:
        under_way = moves.ongoing(client, int(cluster.timeout_s * 1000))
    found = [
        MovingPartition(partition.topic, partition.partition, *under_way[partition])
        for partition in sorted(under_way)
    ]
    lines = ["Current partition reassignments:" if found else "No partition reassignments found."]
    for one in found:
        line = f"{one.topic}-{one.partition}: replicas: {','.join(map(str, one.replicas))}."
        for word, brokers in (("adding", one.adding_replicas), ("removing", one.removing_replicas)):
            if brokers:
                line += f" {word}: {','.join(map(str, brokers))}."
        lines.append(line)
    output.show_all(found, lines)


@reassign.command("cancel")
@click.argument("file", metavar="PLAN.json")
@click.option("--preserve-throttles", is_flag=True, help="Leave throttles as they are.")
@cluster_or_controller_options
@json_option(MovedPartition, key="partitions")
def cancel(file: str, preserve_throttles: bool, cluster: Cluster, output: Output) -> None:
    """Call off what is left of a plan: partitions that have not moved stay where they are."""
    wanted = _read(file)
    timeout_ms = int(cluster.timeout_s * 1000)
    with cluster.connect() as client:
        under_way = moves.ongoing(client, timeout_ms, wanted)
        if under_way:
            _raise_first(moves.reassign(client, timeout_ms, dict.fromkeys(under_way)))
        found = [_moved(partition, "cancelled", one.held) for partition, one in sorted(under_way.items())]
        line = (
            f"Successfully cancelled partition reassignments for: {named(sorted(under_way))}"
            if under_way
            else "None of the specified partition reassignments are active."
        )
        # Shown before the throttles are removed: a broker that does not answer keeps its throttle.
        output.show_all(found, [line])
        if not preserve_throttles:
            if cluster.bootstrap_controller is None:
                brokers = sorted(moves.racks(client))
            else:
                # Controllers do not list running brokers: those of the plan have the throttle.
                brokers = brokers_of(wanted, {moved: one.replicas for moved, one in under_way.items()})
            moves.unthrottle(client, _topics(wanted), brokers)
