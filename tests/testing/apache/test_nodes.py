"""The nodes of a cluster start together, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafka_broker.testing.apache.nodes import Node, Nodes
from pykafka_broker.testing.processes import BrokerError


def test_none_is_left_running_if_one_does_not_start(tmp_path: Path) -> None:
    running: set[int] = set()

    class Pretended(Node):
        def start(self) -> float:
            if self.node_id == 2:
                raise BrokerError("node ended with 1")
            running.add(self.node_id)
            return 0.0

        def kill(self) -> None:
            running.discard(self.node_id)

    with (
        pytest.raises(BrokerError, match="ended with 1"),
        Nodes(tmp_path, {1: "ours", 2: "ours", 3: "ours"}, node=Pretended),
    ):
        pytest.fail("one of them has not started")
    assert not running
