"""The voters of a quorum of both kinds of controllers: moved from the configuration into the log by Kafka's
tool, described by it, and changed by our command.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pykafka_broker.log.disk.checkpoints import decode_meta_properties
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.testing.apache.nodes import Node, Nodes, Software
from pykafka_broker.testing.apache.tools import ToolError, run_tool
from pykafka_broker.testing.processes import environment

QUORUM_TOOL = "org.apache.kafka.tools.MetadataQuorumCommand"
FEATURES_TOOL = "org.apache.kafka.tools.FeatureCommand"
#: A voter tells the leader of itself after three of these.
QUICK = {"controller.quorum.fetch.timeout.ms": "1000"}


@pytest.mark.usefixtures("kafka_jars")
def test_static_voters_of_both_kinds_move_into_the_log_and_are_changed_there(tmp_path: Path) -> None:
    voters: dict[int, Software] = {1: "ours", 2: "ours", 3: "apache"}
    with Nodes(tmp_path, voters, roles="broker,controller", properties=QUICK) as nodes:
        if nodes[nodes.leader()].software == "apache":
            nodes[3].stop()
            nodes.leader()
            nodes[3].start()
        leader = nodes[nodes.leader()]
        assert leader.software == "ours"
        nodes.comes(lambda: is_upgraded(leader), "kraft.version is not raised")

        status = described(leader, "--status")
        for node in nodes:
            assert f'"id": {node.node_id}, "directoryId": "{directory_of(node)}"' in status, status
        rows = described(leader, "--replication").splitlines()[1:]
        statuses = sorted(re.split(r"\s*\t\s*", row)[6].strip() for row in rows if row.strip())
        assert statuses == ["Follower", "Follower", "Leader"]

        removed = changed(leader, "remove-controller", "--id", "3", "--directory-id", directory_of(nodes[3]))
        assert removed == f"Removed KRaft controller 3 with directory id {directory_of(nodes[3])}\n"
        have_voters(nodes, {1, 2})
        added = changed(leader, "add-controller", "--config", str(nodes[3].properties_file))
        assert added == (
            f"Added controller 3 with directory id {directory_of(nodes[3])} and endpoints: "
            f"CONTROLLER://{nodes[3].controller_address}\n"
        )
        have_voters(nodes, {1, 2, 3})


def described(leader: Node, what: str) -> str:
    """What Kafka's tool prints about the quorum."""
    return run_tool(QUORUM_TOOL, "--bootstrap-controller", leader.controller_address, "describe", what)


def is_upgraded(leader: Node) -> bool:
    """Have Kafka's tool raise kraft.version, which needs that every voter has told the leader of itself."""
    try:
        printed = run_tool(
            FEATURES_TOOL,
            "--bootstrap-controller",
            leader.controller_address,
            "upgrade",
            "--feature",
            "kraft.version=1",
        )
    except ToolError as error:
        assert re.search("not all of the voters support it|has not registered", str(error)), error
        return False
    assert "kraft.version was upgraded to 1." in printed
    return True


def changed(leader: Node, *words: str) -> str:
    """What our command prints on a change of the voters."""
    command = [sys.executable, "-m", "pykafka_broker", "quorum", *words, "--bootstrap-server", leader.address]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 0, done.stderr
    return done.stdout


def directory_of(node: Node) -> str:
    meta = decode_meta_properties((node.data_dir / "meta.properties").read_bytes())
    assert meta.directory_id is not None
    return uuid_text(meta.directory_id)


def have_voters(nodes: Nodes, node_ids: set[int]) -> None:
    nodes.quorum(lambda quorum: {voter.replica_id for voter in quorum.current_voters} == node_ids)
