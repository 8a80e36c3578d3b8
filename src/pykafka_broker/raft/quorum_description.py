"""The metadata quorum as its leader describes it (DescribeQuorum), or as a node remembers it."""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.raft.core.describe import QuorumStatus
from pykafka_broker.system.named_tuple import NamedTuple


class QuorumDescription(NamedTuple):
    """The leader, the high watermark, the replicas' progress, and the endpoints of the voters."""

    status: QuorumStatus
    #: Node id of each voter -> listener name -> (host, port).
    endpoints: Mapping[int, Mapping[str, tuple[str, int]]]
