"""`make interop`: stock clients and tools against our broker, or against the oracle (`--broker apache`)."""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from interop import (
    cluster_tools,
    disk_diff,
    dump_check,
    pages,
    secured_lane,
    secured_tools,
    share_group_tools,
    spark,
    streams_group_tools,
    tools,
    upstream,
)
from interop.clients import connect
from interop.clients.client import Client
from interop.clients.driven import ToolchainMissingError
from interop.clients.java import Java39
from interop.exactly_once import copying, lane, streams
from interop.matrix_result import STORED, STORED_SECURITY, STORED_SPARK, MatrixResult, load, of_nodes
from interop.run import load_matrix, row, run_matrix
from interop.scenarios import data, groups
from interop.several_nodes import ChangingNodes, SeveralNodes
from interop.spark import rolling_restarts
from interop.world import MAKER, Broker, World
from pykafka_broker.testing.apache.broker import ApacheBroker
from pykafka_broker.testing.apache.jars import VERSION, ApacheUnavailableError, libs
from pykafka_broker.testing.apache.nodes import Software
from pykafka_broker.testing.cache import CACHE
from pykafka_broker.testing.processes import BrokerProcess, PykafkaNode

PROPERTIES = {
    "num.partitions": "3",
    "auto.create.topics.enable": "true",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "8",
    "transaction.state.log.num.partitions": "4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.share.min.record.lock.duration.ms": "1000",
}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m interop", description=__doc__)
    parser.add_argument(
        "--broker",
        choices=["ours", "apache", "changing", "mixed"],
        default="ours",
        help="changing: three nodes of Apache Kafka that become ours one at a time, and go back; "
        "mixed: clusters of both kinds, for cluster-tools",
    )
    parser.add_argument("--lanes", help=f"of {','.join(LANES)}; by default all that take --nodes")
    parser.add_argument(
        "--nodes", type=int, choices=(1, 3), default=1, help=f"3: for {', '.join(lanes_with(3))}"
    )
    parser.add_argument("--clients", help="of the clients in matrix.toml, comma separated")
    parser.add_argument("--only", default="", help="scenarios and stories whose name holds this text")
    parser.add_argument(
        "--no-kills",
        action="store_true",
        help="with several nodes: kill one only where a scenario does so itself",
    )
    parser.add_argument(
        "--store",
        action="store_true",
        help="keep what became of the clients, for docs/conformance.md",
    )
    chosen = parser.parse_args()
    chosen.lanes = chosen.lanes or ",".join(lanes_with(chosen.nodes, chosen.broker))
    known = [*load_matrix()[0], *(release.name for release in spark.RELEASES)]
    for name, there_are in (("lanes", [*LANES]), ("clients", known)):
        asked = [part for part in (getattr(chosen, name) or "").split(",") if part]
        if unknown := [part for part in asked if part not in there_are]:
            parser.error(f"unknown {name}: {', '.join(unknown)} (there are {', '.join(there_are)})")
    lanes = chosen.lanes.split(",")
    if not set(lanes) <= set(there_are := lanes_with(chosen.nodes, chosen.broker)):
        parser.error(f"with these nodes there are the lanes {', '.join(there_are)}")
    if chosen.broker == "changing" and chosen.nodes == 1:
        parser.error("one node alone is not replaced under load: --nodes 3")
    if not any(chosen.only in title for title in titles(lanes)):
        parser.error(f"no scenario or story of these lanes has {chosen.only!r} in its name")
    return chosen


def lanes_with(nodes: int, broker: str = "ours") -> list[str]:
    """The lanes that there are with so many nodes of this kind."""
    if broker == "mixed":
        return ["cluster-tools"] if nodes == 1 else []
    with_several = OF_CHANGING_NODES if broker == "changing" else OF_NODES
    return [name for name in LANES if nodes == 1 or name in with_several]


def titles(lanes: Sequence[str]) -> list[str]:
    """The names that `--only` chooses from; a lane that always runs whole has its own name."""
    found: list[str] = []
    for lane_name in lanes:
        if lane_name == "clients":
            found += [scenario.name for scenario in load_matrix()[1]]
        elif lane_name == "security":
            held = [each.name for each in secured_lane.scenarios()]
            found += [lane_name, *(f"{way.name}.{name}" for way in secured_lane.ways() for name in held)]
        elif lane_name == "cluster-tools":
            found += cluster_tools.titles()
        elif lane_name in STORIES:
            found += [lane.title_of(story) for story in STORIES[lane_name]]
        else:
            found.append(lane_name)
    return found


def java_is_missing() -> str | None:
    try:
        libs()
    except ApacheUnavailableError as error:
        return str(error)
    return None


def say(line: str) -> None:
    print(line, flush=True)


def clients_lane(chosen: argparse.Namespace, broker: BrokerProcess) -> list[str]:
    return with_nodes(chosen, broker, partial(run_clients, chosen))


def with_nodes(
    chosen: argparse.Namespace, broker: BrokerProcess, run: Callable[[Broker], list[str]]
) -> list[str]:
    """What fails with the broker, or with the nodes that were asked for; then their logs are kept."""
    if chosen.nodes == 1:
        return run(broker)
    with several(chosen)(PROPERTIES, None) as nodes:
        failures = run(nodes)
        if failures:
            say(f"the logs of the nodes are in {nodes.keep_logs(CACHE / 'interop-nodes')}")
    return failures


def several(chosen: argparse.Namespace) -> Callable[[Mapping[str, str], Path | None], SeveralNodes]:
    """Makes the nodes that were asked for, with these properties and in this folder."""
    if chosen.broker == "changing":
        return partial(ChangingNodes, chosen.nodes)
    return partial(SeveralNodes, chosen.broker, chosen.nodes)


def run_clients(chosen: argparse.Namespace, broker: Broker) -> list[str]:
    names, scenarios = load_matrix()
    wanted = [name for name in names if not chosen.clients or name in chosen.clients.split(",")]
    chosen_scenarios = [scenario for scenario in scenarios if chosen.only in scenario.name]
    clients, missing = connect_all(wanted, broker.address)
    with closing(World(broker, clients)) as world:
        say(row("clients", list(clients)))
        say(row("", [client.version for client in clients.values()]))
        kills = chosen.nodes > 1 and not chosen.no_kills
        results = run_matrix(world, chosen_scenarios, say, kills=kills)
    if chosen.store:
        versions = {name: client.version for name, client in clients.items()}
        path = of_nodes(STORED, chosen.nodes)
        store(MatrixResult(versions, results.cells), path, names, [scenario.name for scenario in scenarios])
    return absent(chosen, missing) + results.failures


def store(result: MatrixResult, path: Path, names: Sequence[str], scenarios: Sequence[str]) -> None:
    """Of what did not run, what was stored before stays, while it is in the matrix."""
    path.write_text(load(path).updated(result).of(names, scenarios).as_json())
    pages.write()


def absent(chosen: argparse.Namespace, missing: Mapping[str, str]) -> list[str]:
    """A client that was asked for by name has to be there; on CI, every one."""
    for name, why in missing.items():
        say(f"without {name}: {why}")
    return [f"{name}: {why}" for name, why in missing.items() if chosen.clients or os.environ.get("CI")]


def connect_all(names: Sequence[str], bootstrap: str) -> tuple[dict[str, Client], dict[str, str]]:
    """The clients, and of those that cannot run on this machine the reason."""
    clients: dict[str, Client] = {}
    missing: dict[str, str] = {}
    for name in names:
        try:
            clients[name] = connect(name, bootstrap)
        except (ToolchainMissingError, ApacheUnavailableError) as error:
            missing[name] = str(error)
    return clients, missing


def spark_lane(chosen: argparse.Namespace, broker: BrokerProcess) -> list[str]:
    say("Spark")
    names = [release.name for release in spark.RELEASES]
    wanted = [name for name in names if not chosen.clients or name in chosen.clients.split(",")]
    if chosen.nodes > 1:
        failed, missing = rolling_restarts.run(lambda: several(chosen)(PROPERTIES, None), wanted, say)
        return absent(chosen, missing) + failed
    by_release, missing = spark.run_releases(broker, wanted, say)
    if chosen.store:
        cells = {
            scenario: {name: found[scenario] for name, found in by_release.items()}
            for scenario in spark.SCENARIOS
        }
        versions = {release.name: release.told for release in spark.RELEASES if release.name in by_release}
        store(MatrixResult(versions, cells), STORED_SPARK, names, spark.SCENARIOS)
    failures = [
        f"{scenario} with {name}: {cell}"
        for name, found in by_release.items()
        for scenario, cell in found.items()
        if cell.startswith("fails")
    ]
    return absent(chosen, missing) + failures


def security_lane(chosen: argparse.Namespace, _broker: BrokerProcess) -> list[str]:
    """Secured nodes of its own."""
    names = load_matrix()[0]
    wanted = [name for name in names if not chosen.clients or name in chosen.clients.split(",")]
    software: Software = "ours" if chosen.broker == "ours" else "apache"
    only = "" if chosen.only == "security" else chosen.only
    found = secured_lane.run(software, wanted, only, say, chosen.nodes)
    if chosen.store:
        store(found.result, of_nodes(STORED_SECURITY, chosen.nodes), names, secured_lane.titles())
    return absent(chosen, found.missing) + found.failures


def tools_lane(chosen: argparse.Namespace, broker: BrokerProcess) -> list[str]:
    """Kafka's command-line tools; those about users, on secured nodes of its own."""
    if missing := java_is_missing():
        say(f"without the Java tools: {missing}")
        return []
    say("Java command-line tools")
    failures = with_nodes(chosen, broker, run_tools)
    return failures + secured_tools.run("ours" if chosen.broker == "ours" else "apache", say, chosen.nodes)


def run_tools(broker: Broker) -> list[str]:
    failures: list[str] = []
    for version in (VERSION, Java39.version):
        with closing(World(broker, {MAKER: connect(MAKER, broker.address)})) as world:
            world.tools_version = version
            failures += tools.run(world, say)
            if version == VERSION:
                failures += share_group_tools.run(world, say)
                failures += streams_group_tools.run(world, say)
    return failures


def cluster_tools_lane(chosen: argparse.Namespace, _broker: BrokerProcess) -> list[str]:
    """Clusters of its own."""
    if missing := java_is_missing():
        say(f"without the Java tools: {missing}")
        return []
    say("Java command-line tools, with several nodes")
    return cluster_tools.run(cluster_tools.VOTERS[chosen.broker], chosen.only, say)


def dump_lane(_chosen: argparse.Namespace, broker: BrokerProcess) -> list[str]:
    """Check the data folder: the data of the other lanes, and some of everything in case they did not run."""
    if missing := java_is_missing():
        say(f"without Kafka's dump tool: {missing}")
        return []
    say("the data folder in Kafka's dump tool")
    with closing(World(broker, {MAKER: connect(MAKER, broker.address)})) as world:
        client = world.clients[MAKER]
        data.every_codec_is_read_by_every_client(world, client)
        groups.a_commit_is_where_the_next_reader_begins(world, client)
    broker.stop()
    try:
        return dump_check.check(broker.data_dir, say)
    finally:
        broker.start()


def upstream_lane(_chosen: argparse.Namespace, broker: BrokerProcess) -> list[str]:
    say("kafka-python's own integration tests")
    return upstream.run(type(broker), say)


def disk_lane(_chosen: argparse.Namespace, _broker: BrokerProcess) -> list[str]:
    """Two brokers of its own."""
    if missing := java_is_missing():
        say(f"without Apache Kafka to compare with: {missing}")
        return []
    say("the same conversation with Apache Kafka and with us, and what both leave on disk")
    return disk_diff.run(say)


def exactly_once_lane(stories: Sequence[lane.Story]) -> Lane:
    """Brokers of its own, one for each story."""

    def run_stories(chosen: argparse.Namespace, broker: BrokerProcess) -> list[str]:
        if missing := java_is_missing():
            say(f"without Kafka's programs: {missing}")
            return []
        say("exactly once, with kills of broker and programs")
        if chosen.nodes > 1:
            return lane.run(stories, several(chosen), chosen.only, say)
        return lane.run(stories, type(broker), chosen.only, say)

    return run_stories


Lane = Callable[[argparse.Namespace, BrokerProcess], list[str]]

#: The lanes that take nodes that change, and all that take several nodes.
OF_CHANGING_NODES = {"clients", "copies", "spark", "streams"}
OF_NODES = {*OF_CHANGING_NODES, "security", "tools"}

STORIES: dict[str, Sequence[lane.Story]] = {"copies": copying.STORIES, "streams": streams.STORIES}

LANES: dict[str, Lane] = {
    "clients": clients_lane,
    "security": security_lane,
    "spark": spark_lane,
    "tools": tools_lane,
    "cluster-tools": cluster_tools_lane,
    "dump": dump_lane,
    "disk": disk_lane,
    "upstream": upstream_lane,
    **{name: exactly_once_lane(stories) for name, stories in STORIES.items()},
}


def main() -> int:
    chosen = options()
    # The clients' own complaints about rebalances and restarts that a scenario causes.
    logging.basicConfig(handlers=[logging.NullHandler()])
    if os.environ.get("CI") and (missing := java_is_missing()):
        print(f"on CI every lane has to run: {missing}")
        return 1
    broker = PykafkaNode(PROPERTIES) if chosen.broker in ("ours", "mixed") else ApacheBroker(PROPERTIES)
    failures: list[str] = []
    with closing(broker):
        if chosen.nodes == 1:
            broker.start()
        for lane in chosen.lanes.split(","):
            failures += LANES[lane](chosen, broker)
        if failures and broker.log_file.exists():
            kept = shutil.copy(broker.log_file, CACHE / f"interop-{broker.name}.log")
            say(f"the broker's log is in {kept}")
    for failure in failures:
        print(f"\nFAILED {failure}")
    print(f"\n{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
