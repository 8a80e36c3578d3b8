"""Tools that compare replicas, and show those that are missing."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping

from interop.cluster_tools.cluster import (
    CONFIGS,
    SERVER,
    STAYS,
    TOOLS,
    Cluster,
    Replica,
    Shown,
    await_shown,
    replicas_of,
    replicated,
    shown,
    write,
)
from pykafka_broker.testing.apache.tools import SHORT_LIVED, command

#: What `kafka-topics` shows of a topic all of whose replicas are in sync, of which it needs fewer.
ALL_WELL: Mapping[str, list[Shown]] = {
    option: [] for option in ("under-replicated", "at-min-isr", "under-min-isr", "unavailable")
}


def replicas_are_the_same(cluster: Cluster) -> None:
    with replicated(cluster, "verified") as nodes:
        write(cluster, "verified")
        replicas = replicas_of(cluster, "verified")
        sizes = {replica.partition: replica.size_bytes for replica in replicas}
        assert replicas == sorted(
            Replica(node.node_id, partition, sizes[partition], 0)
            for node in nodes
            for partition in ("verified-0", "verified-1")
        )
        assert min(sizes.values()) > 0, sizes
        offsets = cluster.tool("GetOffsetShell", "--topic", "verified")
        assert offsets.split() == ["verified:0:50", "verified:1:50"], offsets
        lags = re.findall(
            r"max lag is (\d+) for partition \S+ at offset (\d+) among 2", verification(cluster)
        )
        assert ("0", "50") in lags, lags


def replicas_that_fail_are_shown(cluster: Cluster) -> None:
    """While a broker is away that has one of three replicas."""

    def by_option() -> dict[str, list[Shown]]:
        return {option: shown(cluster, "failing", f"--{option}-partitions") for option in ALL_WELL}

    with replicated(cluster, "failing", 3, min_insync_replicas="2") as (first, second, stays):
        ids = [first.node_id, second.node_id, stays.node_id]
        assert by_option() == ALL_WELL
        first.kill()
        await_shown(cluster, "failing", [ids[1], STAYS], {*ids[1:]})
        short = [Shown(0, ids[1], ids, {*ids[1:]}), Shown(1, STAYS, ids[::-1], {*ids[1:]})]
        assert by_option() == {**ALL_WELL, "under-replicated": short, "at-min-isr": short}
        raised = ("--alter", "--add-config", "min.insync.replicas=3")
        cluster.tool(CONFIGS, "--entity-type", "topics", "--entity-name", "failing", *raised)
        assert by_option() == {**ALL_WELL, "under-replicated": short, "under-min-isr": short}
        first.start()
        await_shown(cluster, "failing", [ids[1], STAYS], {*ids})
        whole = [partition._replace(in_sync={*ids}) for partition in short]
        assert by_option() == {**ALL_WELL, "at-min-isr": whole}


def verification(cluster: Cluster) -> str:
    """What the tool that compares replicas prints in some seconds: it ends by a signal alone."""
    tool = command(
        f"{TOOLS}.ReplicaVerificationTool",
        *("--broker-list", cluster.bootstrap(SERVER)[1], "--topics-include", "verified"),
        *("--time", "-2", "--report-interval-ms", "500"),
        jvm_options=SHORT_LIVED,
    )
    try:
        done = subprocess.run(tool, capture_output=True, text=True, timeout=8, check=False)
    except subprocess.TimeoutExpired as expired:
        return (expired.stdout or b"").decode()
    raise AssertionError(f"it ended: {done.stdout}{done.stderr}")
