"""Every command of docs/migrate.md works as it stands there, but for the port."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.cli.conftest import run_command
from tests.exchange.filling import consume_as_group, create_topics, producer
from tests.exchange.node import Node
from tests.support.pages import REPOSITORY

COMMANDS = re.findall(
    r"^ *\$ pykafka-broker (.+)$", (REPOSITORY / "docs" / "migrate.md").read_text(), re.MULTILINE
)


def test_every_command_of_the_guide_works(tmp_path: Path) -> None:
    node = Node(tmp_path)
    assert "start --config server.properties" in COMMANDS, "this is how the node is started"
    with node.running("ours"):
        create_topics(node.address, "orders")
        write = producer(node.address)
        write.produce("orders", b"one")
        assert write.flush(10) == 0
        consume_as_group(node.address, "readers", "orders", 1)
        for command in COMMANDS:
            if not command.startswith("start"):
                result = run_command(*shlex.split(command.replace("127.0.0.1:9092", node.address)))
                assert result.status == 0, (command, result.err)
                assert result.out, command
