"""The same conversations with three nodes of Apache Kafka and with three of ours; one is killed meanwhile.

Those whose settings ask clients for a login have clusters of their own, in which each node has the settings;
other settings are about one node.

Each conversation has a home: the node that leads the partitions of its topics and coordinates its groups,
transactions and share partitions. The topics, also those of the coordinators, have a replica on every node,
and are laid out alike on both sides. The run has five parts: with all nodes; with the other two while a node
is killed; with that node dead, whose conversations now have their home where its leadership went; with all
three again; and the conversations that are held last. After these Apache Kafka has no memory left, so they
are not held again if they differ.

What conversations expect is true of one node. Here the two sides are compared with each other alone: where
Apache Kafka itself answers otherwise than one node does, ours has to do so as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from interop.conformance.accepted import ACCEPTED, OF_SEVERAL_NODES, ONE_NODE
from interop.conformance.conversation import Case
from interop.conformance.leftovers import LaidOut, laid_out, removed
from interop.conformance.play import (
    SETTINGS,
    Result,
    Verdict,
    by_settings,
    ids_of,
    judge_differences,
    run,
)
from interop.conformance.shares import PARTITIONS_ASKED
from interop.conformance.talk import PAUSE_S, Home, Side
from interop.several_nodes import REPLICATED, SeveralNodes, in_sync
from pykafka_broker.client.core.connection import CLIENT, ClientSecurity, Identity
from pykafka_broker.client.security import login_of
from pykafka_broker.protocol.errors import KafkaError, ProtocolError
from pykafka_broker.protocol.messages import create_topics as m
from pykafka_broker.protocol.messages.elect_leaders import ElectLeadersRequest
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka_broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from pykafka_broker.sasl.jaas import parse_jaas
from pykafka_broker.testing.apache.nodes import Node, Software
from pykafka_broker.testing.processes import BrokerError

NODES = 3
#: The node that is killed, on both sides.
KILLED = 1
#: One of so many conversations is held while it is killed.
MEANWHILE = 10
#: More than with one node: most of the time they wait for replicas.
WORKERS = 12
#: The longest wait for the removal of what conversations have left behind.
SWEEP_S = 30.0

COMPACTED = {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}
#: Neighbouring share partitions belong to neighbouring partitions of __share_group_state. A node leads so
#: many in a row: a conversation with as many share partitions can be at home with one node.
SHARE_PARTITIONS_OF_ONE = PARTITIONS_ASKED
#: How many partitions of each are led by one node. The configs are those that coordinators would give them.
LED_BY_ONE = {
    "__consumer_offsets": 1,
    "__transaction_state": 1,
    "__share_group_state": SHARE_PARTITIONS_OF_ONE,
}
INTERNAL_TOPICS = {
    "__consumer_offsets": COMPACTED,
    "__transaction_state": {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
        "min.insync.replicas": "2",
    },
    "__share_group_state": {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": "2",
        "retention.ms": "-1",
        "segment.bytes": "104857600",
    },
}
ACCEPTED_OF_SEVERAL = (*ACCEPTED, *OF_SEVERAL_NODES)
CLUSTER_SETTINGS = {
    **SETTINGS,
    **REPLICATED,
    # Unless it is named, brokers connect to it without a login, also where it asks for one.
    "inter.broker.listener.name": "PLAINTEXT",
    "offsets.topic.num.partitions": str(NODES),
    "transaction.state.log.num.partitions": str(NODES),
    "share.coordinator.state.topic.num.partitions": str(NODES * SHARE_PARTITIONS_OF_ONE),
    # No live node is fenced on a loaded machine.
    "broker.session.timeout.ms": "9000",
    # Groups without offsets are forgotten so long after their shard was loaded, which is another time on each
    # side; not during a run.
    "offsets.retention.check.interval.ms": "3600000",
    # With room for the two threads of the cleaner that a conversation asks for.
    "log.cleaner.dedupe.buffer.size": "4194304",
    # Leaders go back when this run says so.
    "auto.leader.rebalance.enable": "false",
}

#: Settings that have this ask clients for a login. It also says as whom the nodes ask each other.
LOGIN = "listener.name.plaintext.plain.sasl.jaas.config"


@dataclass
class Cluster:
    """The nodes of one side."""

    name: str
    several: SeveralNodes
    #: What `lay_out` has made.
    laid_out: LaidOut | None = None

    @property
    def side(self) -> Side:
        """As conversations see it now. Raises BrokerError when it does not come to rest."""
        nodes = list(self.several.nodes)
        fixed: dict[str, str] = {}
        for node in nodes:
            told = f"of node {node.node_id}"
            fixed[node.address] = f"<address {told}>"
            fixed[node.controller_address] = f"<controller address {told}>"
            fixed[str(node.data_dir)] = f"<log dir {told}>"
            for text, name in ids_of(node.data_dir).items():
                fixed[text] = name if name == "<cluster id>" else f"{name[:-1]} {told}>"
        ports = frozenset(port for node in nodes for port in (node.port, node.controller_port))
        homes = self._homes()
        return Side(
            self.name,
            homes[0].address,
            fixed,
            ports,
            None,
            homes=homes,
            active_controller=self._active_controller,
        )

    def _active_controller(self) -> tuple[int, str]:
        nodes = self.several.nodes
        leader = nodes.leader()
        return leader, nodes[leader].controller_address

    def lay_out(self) -> None:
        """Create the internal topics, whose first partitions are led by node 1, and so on."""
        for name, configs in INTERNAL_TOPICS.items():
            topic = m.CreatableTopic(
                name=name,
                num_partitions=-1,
                replication_factor=-1,
                assignments=[
                    m.CreatableReplicaAssignment(partition_index=partition, broker_ids=replicas)
                    for partition, replicas in enumerate(replicas_of(name))
                ],
                configs=[m.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
            )
            request = m.CreateTopicsRequest(topics=[topic], timeout_ms=30_000, validate_only=False)
            [created] = self._ask(request).topics
            if created.error_code:
                raise BrokerError(f"{name} is not created: {created}")
        self.come_home()
        self.laid_out = laid_out(self._ask)

    def kill(self) -> None:
        """Kill the node, and wait until others lead in its place."""
        self.several.nodes[KILLED].kill()
        self.several.nodes.comes(lambda: KILLED not in self._leaders().values(), "nobody took over")

    def start_again(self) -> None:
        self.several.nodes[KILLED].start()
        self.come_home()

    def come_home(self) -> None:
        """Wait until all replicas are in sync, and have the first of each partition lead."""

        def is_so() -> bool:
            if not all(map(in_sync, self.several.nodes)):
                return False
            self._ask(ElectLeadersRequest(election_type=0, topic_partitions=None))
            return self._leaders() == {
                (name, partition): replicas[0]
                for name in INTERNAL_TOPICS
                for partition, replicas in enumerate(replicas_of(name))
            }

        self.several.nodes.comes(is_so, "the first replicas do not lead")
        self.several.nodes.comes(self._is_warm, "a node hands out no producer ids")

    def sweep(self) -> list[str]:
        """Remove what conversations have left behind, until no running node shows any of it.

        What is still shown after `SWEEP_S`: the APIs that were asked to remove it.
        """
        deadline = time.monotonic() + SWEEP_S
        while left := [api for node in self._running() for api in self._removed(node)]:
            if time.monotonic() > deadline:
                return sorted(set(left))
            time.sleep(PAUSE_S)
        return []

    def _removed(self, node: Node) -> list[str]:
        assert self.laid_out is not None, "nothing is laid out"
        try:
            with closing(node.connection()) as connection:
                return removed(connection.send, node.node_id, self.laid_out)
        except (OSError, ProtocolError, KafkaError) as error:
            return [f"node {node.node_id}: {error}"]

    def _is_warm(self) -> bool:
        """Whether each running node has producer ids to hand out: Apache Kafka's fetches some at the first
        request.
        """
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        return not any(ask(node, request).error_code for node in self._running())

    def _homes(self) -> tuple[Home, ...]:
        leaders = self._leaders()
        addresses = [
            self.several.nodes[leaders["__consumer_offsets", partition]].address for partition in range(NODES)
        ]
        return homes_at(addresses)

    def _leaders(self) -> dict[tuple[str, int], int]:
        """The leaders of the internal topics on which all running nodes agree; nothing while they do not."""
        found = [leaders_by(node) for node in self._running()]
        return found[0] if all(each == found[0] for each in found) else {("", 0): KILLED}

    def _ask(self, request: Any) -> Any:
        return ask(self._running()[0], request)

    def _running(self) -> list[Node]:
        return [node for node in self.several.nodes if node.is_running]


def ask(node: Node, request: Any) -> Any:
    with closing(node.connection()) as connection:
        return connection.send(request)


def homes_at(addresses: Sequence[str]) -> tuple[Home, ...]:
    """The homes of conversations, each at the node that leads its partitions now."""
    in_a_row = SHARE_PARTITIONS_OF_ONE
    return tuple(
        Home(
            address,
            tuple(replicas),
            partition,
            NODES,
            range(partition * in_a_row, (partition + 1) * in_a_row),
            NODES * in_a_row,
        )
        for partition, (address, replicas) in enumerate(
            zip(addresses, replicas_of("__consumer_offsets"), strict=True)
        )
    )


def replicas_of(topic: str) -> list[list[int]]:
    """The replicas of each partition of an internal topic; the first is to lead."""
    leads = [first for first in range(NODES) for _ in range(LED_BY_ONE[topic])]
    return [[(first + step) % NODES + 1 for step in range(NODES)] for first in leads]


def leaders_by(node: Node) -> dict[tuple[str, int], int]:
    """The leaders of the internal topics as this node knows them."""
    topics = [MetadataRequestTopic(name=name) for name in INTERNAL_TOPICS]
    try:
        answer: MetadataResponse = ask(node, MetadataRequest(topics=topics, allow_auto_topic_creation=False))
    except (OSError, ProtocolError, KafkaError):
        return {}
    return {
        (str(topic.name), partition.partition_index): partition.leader_id
        for topic in answer.topics
        for partition in topic.partitions
    }


def identity_with(settings: Mapping[str, str]) -> Identity:
    """As whom the run itself asks nodes with these settings: as they ask each other."""
    if LOGIN not in settings:
        return CLIENT
    [node] = [module.options for module in parse_jaas(settings[LOGIN])]
    return Identity(security=ClientSecurity(login=login_of(node["username"], node["password"], "PLAIN")))


@contextmanager
def both_clusters(
    settings: Mapping[str, str], folder: Path | None = None
) -> Iterator[tuple[Cluster, Cluster]]:
    """Three nodes of Apache Kafka and three of ours, each with these settings."""
    with ExitStack() as stack:

        def cluster(software: Software) -> Cluster:
            properties = {**CLUSTER_SETTINGS, **settings}
            own = folder / software if folder else None
            several = SeveralNodes(software, NODES, properties, own, identity=identity_with(settings))
            made = Cluster(software, stack.enter_context(several))
            made.lay_out()
            return made

        yield cluster("apache"), cluster("ours")


def run_with_a_kill(
    cases: Sequence[Case],
    apache: Cluster,
    ours: Cluster,
    report: Callable[[Result], None],
    say: Callable[[str], None],
) -> list[Result]:
    """Hold the conversations in five parts, as told at the top; they have the settings of these clusters."""
    last = [case for case in cases if case.conversation.last]
    rest = [case for case in cases if not case.conversation.last]
    side = apache.side
    others = [
        case
        for case in rest
        if not case.conversation.alone and side.home_of(case.subject) != side.homes[KILLED - 1]
    ]
    meanwhile = set(others[::MEANWHILE])
    parts = [[case for case in rest if case not in meanwhile][start::3] for start in range(3)]

    def held(part: Sequence[Case], sides: tuple[Side, Side]) -> list[Result]:
        found = run(part, *sides, accepted=ACCEPTED_OF_SEVERAL, workers=WORKERS)
        return [seen_of_several(result) for result in found]

    def sweep() -> None:
        for cluster in both:
            if left := cluster.sweep():
                say(f"    {cluster.name} still has something left behind: {', '.join(left)}")

    def held_twice(part: Sequence[Case]) -> list[Result]:
        """Those that differ are held again: on a busy machine one of the nodes may be late."""
        sides = sides_of(both)
        sweep()
        first = held(part, sides)
        sweep()
        second = held([result.case for result in first if not is_fine(result)], salted(sides, "again"))
        for result in second:
            report(result)
        fine = [result for result in first if is_fine(result)]
        say(f"    {len(second)} differed and were held again: {sum(map(is_fine, second))} are equal now")
        return fine + second

    both = (apache, ours)
    say(f"{len(parts[0])} with three nodes")
    found = held_twice(parts[0])
    say(f"{len(meanwhile)} while node {KILLED} is killed")
    sides = sides_of(both)
    with ThreadPoolExecutor(2) as killers:
        killed = [killers.submit(cluster.kill) for cluster in both]
        during = held(sorted(meanwhile, key=cases.index), salted(sides, "meanwhile"))
        for each in killed:
            each.result()
    found += [result for result in during if is_fine(result)]
    again = [result.case for result in during if not is_fine(result)]
    say(f"{len(parts[1])} with node {KILLED} dead, and {len(again)} again that were disturbed by its end")
    found += held_twice([*parts[1], *again])
    with ThreadPoolExecutor(2) as starters:
        for each in [starters.submit(cluster.start_again) for cluster in both]:
            each.result()
    say(f"{len(parts[2])} with three nodes again")
    found += held_twice(parts[2])
    say(f"{len(last)} at the end")
    at_the_end = held(last, sides_of(both))
    for result in at_the_end:
        report(result)
    return found + at_the_end


def sides_of(both: tuple[Cluster, Cluster]) -> tuple[Side, Side]:
    return both[0].side, both[1].side


def salted(sides: tuple[Side, Side], salt: str) -> tuple[Side, Side]:
    """The same, where conversations have other names."""
    apache, ours = sides
    return replace(apache, salt=salt), replace(ours, salt=salt)


def is_fine(result: Result) -> bool:
    return result.verdict not in (Verdict.DIFFERENT, Verdict.BROKEN)


def is_of_one_node(case: Case) -> bool:
    """Whether it is held with one node only."""
    if any(entry.concerns(case) for entry in ONE_NODE):
        return True
    settings = dict(case.conversation.settings)
    return bool(settings) and LOGIN not in settings


def by_clusters(cases: Iterable[Case]) -> list[tuple[Mapping[str, str], list[Case]]]:
    """Those of them that are held with clusters, by the settings of these."""
    return by_settings(case for case in cases if not is_of_one_node(case))


def seen_of_several(result: Result) -> Result:
    """Where Apache Kafka does not do what one node does, what counts is that ours does the same."""
    if result.verdict is not Verdict.BROKEN or "nothing is compared" in result.problem:
        return result
    judged = judge_differences(result.case, result.differences, result.problem, ACCEPTED_OF_SEVERAL)
    return replace(judged, problem=result.problem)
