"""The tool that finds transactions and aborts them."""

from __future__ import annotations

import re
import time
from functools import partial

from interop.cluster_tools.cluster import CONFIGS, SERVER, Cluster, records, replicated, write
from pykafka_broker.client import producer as wire
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.producer_state import TransactionLost
from pykafka_broker.protocol.records.batch import build_batch

#: Older than any transaction may be, which is 15 minutes.
LONG_AGO_MS = 3_600_000


def transactions_are_found_and_aborted(cluster: Cluster) -> None:
    """Whichever broker coordinates, and whichever leads."""
    with replicated(cluster, "transacted"):
        producer = write(cluster, "transacted", "of-the-tools")
        listed = cluster.tool("TransactionsCommand", "list")
        assert re.search(r"^of-the-tools\s+\d+\s+\d+\s+Ongoing", listed, re.M), listed
        described = cluster.tool("TransactionsCommand", "describe", "--transactional-id", "of-the-tools")
        assert "transacted-0,transacted-1" in described or "transacted-1,transacted-0" in described, described
        of = ("--topic", "transacted", "--partition", "1")
        active = cluster.tool("TransactionsCommand", "describe-producers", *of)
        row = active.splitlines()[-1].split()
        assert row[3] == "49" or row[2] == "49", active
        cluster.tool("TransactionsCommand", "abort", *of, "--start-offset", "0")
        active = cluster.tool("TransactionsCommand", "describe-producers", *of)
        assert active.splitlines()[-1].split()[-1] == "None", active
        hanging = cluster.tool("TransactionsCommand", "find-hanging", "--topic", "transacted")
        assert len(hanging.splitlines()) == 1, hanging
        del producer
        forgotten = ("forceTerminateTransaction", "--transactionalId", "of-the-tools")
        cluster.tool("TransactionsCommand", *forgotten)
        listed = cluster.tool("TransactionsCommand", "list")
        assert re.search(r"^of-the-tools\s+\d+\s+\d+\s+Empty", listed, re.M), listed


def hanging_transactions_are_found_and_aborted(cluster: Cluster) -> None:
    """Their coordinator does not know of the partitions, which it is not told and then not asked for."""
    partitions = [("hanging", 0), ("hanging", 1)]
    began_ms = int(time.time() * 1000) - LONG_AGO_MS
    batch = build_batch([(began_ms, None, b"hanging", ())])

    def found(*where: str) -> list[list[str]]:
        printed = cluster.tool("TransactionsCommand", "find-hanging", *where)
        return sorted(row.split() for row in printed.splitlines()[1:])

    with (
        replicated(cluster, "hanging") as nodes,
        Client(cluster.bootstrap(SERVER)[1]) as client,
    ):
        producer = wire.Producer(client, "of-no-coordinator")
        producer.initialise()
        producer.state.transaction_version = 0
        producer.state.partitions.update(partitions)

        def is_written(partition: tuple[str, int]) -> bool:
            try:
                producer.write(partition, batch)
            except TransactionLost:
                return False
            return True

        assert not any(map(is_written, partitions)), "a broker does not ask the coordinator"
        key = "transaction.partition.verification.enable"
        of = ("--entity-type", "brokers", "--entity-default", "--alter")
        cluster.tool(CONFIGS, *of, "--add-config", f"{key}=false")
        for partition in partitions:
            cluster.nodes.comes(partial(is_written, partition), f"{partition} is not written")
        cluster.tool(CONFIGS, *of, "--delete-config", key)
        write(cluster, "hanging")
        assert records(cluster, "hanging") == []
        # Producer id and epoch, no marker of a coordinator, where it starts, and when.
        of_producer = [producer.state.producer_id, producer.state.epoch, -1, 0, began_ms]
        hanging = [[name, *map(str, (index, *of_producer))] for name, index in partitions]
        for where in (("--topic", "hanging"), *(("--broker-id", str(node.node_id)) for node in nodes)):
            rows = found(*where)
            assert [row[:-1] for row in rows] == hanging, (where, rows)
        for name, index in partitions:
            begins = ("--topic", name, "--partition", str(index), "--start-offset", "0")
            cluster.tool("TransactionsCommand", "abort", *begins)
        assert found("--topic", "hanging") == []
        assert len(records(cluster, "hanging")) == 100
