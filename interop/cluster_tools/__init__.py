"""Apache Kafka's command-line tools against several nodes, of combined and of separate roles, asked through
brokers (--bootstrap-server) and through controllers (--bootstrap-controller).

Each layout is a cluster of three voters whose voters stand in the log, and of a broker that is no voter. They
are ours, Apache Kafka's, or some of each. A check is a function of a cluster; the lane runs all of them on
each layout, in this order.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from interop.checks import tried
from interop.cluster_tools import leaders, metadata, replicas, transactions
from interop.cluster_tools.cluster import LIKE, STAYS, Cluster
from pykafka_broker.testing.apache.nodes import Nodes, Roles, Software

LAYOUTS: Mapping[str, Roles] = {"combined": "broker,controller", "separate": "controller"}
#: By the value of `--broker`: the voters.
VOTERS: Mapping[str, Mapping[int, Software]] = {
    "ours": {1: "ours", 2: "ours", 3: "ours"},
    "apache": {1: "apache", 2: "apache", 3: "apache"},
    "mixed": {1: "apache", 2: "ours", 3: "ours"},
}
PROPERTIES = {
    # Leaders are elected by the tool alone.
    "auto.leader.rebalance.enable": "false",
    # A throttled replica has fetched once, and its next fetch is eleven of these later.
    "replication.quota.window.size.seconds": "60",
}
#: The lane, in its order.
CHECKS: tuple[Callable[[Cluster], None], ...] = (
    metadata.topics_are_created_and_described_over_all_brokers,
    metadata.the_quorum_is_described,
    metadata.the_nodes_are_listed,
    metadata.features_are_described_lowered_and_raised,
    metadata.brokers_are_configured,
    leaders.preferred_leaders_are_elected,
    leaders.leaders_out_of_sync_are_elected,
    leaders.partitions_are_reassigned,
    replicas.replicas_are_the_same,
    replicas.replicas_that_fail_are_shown,
    transactions.transactions_are_found_and_aborted,
    transactions.hanging_transactions_are_found_and_aborted,
    metadata.stopped_brokers_are_forgotten,
    metadata.a_running_broker_is_forgotten_until_it_starts_again,
    metadata.controllers_are_added_and_removed,
)


def title_of(check: Callable[[Cluster], None], layout: str) -> str:
    return f"{check.__name__.replace('_', ' ')} ({layout})"


def titles() -> list[str]:
    """Those of all checks on all layouts."""
    return [title_of(check, layout) for layout in LAYOUTS for check in CHECKS]


def run(voters: Mapping[int, Software], only: str, report: Callable[[str], None]) -> list[str]:
    """Run the checks whose title holds `only` on each layout; what failed."""
    failures: list[str] = []
    for layout, roles in LAYOUTS.items():
        wanted = [check for check in CHECKS if only in title_of(check, layout)]
        if not wanted:
            continue
        with tempfile.TemporaryDirectory(prefix="cluster-tools-") as folder:
            nodes = Nodes(Path(folder), voters, dynamic=True, roles=roles, properties=PROPERTIES)
            nodes.add(STAYS, voters[LIKE[STAYS]], roles="broker")
            with nodes:
                nodes.leader()
                for check in wanted:
                    checked = partial(check, Cluster(nodes, Path(folder)))
                    failures += tried(title_of(check, layout), checked, report)
    return failures
