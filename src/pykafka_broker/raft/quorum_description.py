"""The metadata quorum as its leader describes it to those who ask (DescribeQuorum), and as another node
does from memory where none leads.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.raft.core.describe import QuorumStatus
from pykafka_broker.system.named_tuple import NamedTuple


class QuorumDescription(NamedTuple):
    """The leader, how far the log is committed, who has how much of it, and where the voters are reached."""

    status: QuorumStatus
    #: Node id of each voter -> listener name -> (host, port).
    endpoints: Mapping[int, Mapping[str, tuple[str, int]]]
