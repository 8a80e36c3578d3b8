"""QuorumStateData: the content of the `quorum-state` file beside a raft log, as JSON in Kafka's own file.

v0 is for static voters (kraft.version 0), v1 for dynamic ones: it adds the directory id of the vote and drops
the cluster id, the applied offset and the voters.
"""

from __future__ import annotations

from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.schema import array, i32, i64, message, string, uuid


@message()
class Voter:
    voter_id: int = i32()


@message(versions="0-1", flexible="0+")
class QuorumStateData:
    cluster_id: str = string("0", default="")
    leader_id: int = i32(default=-1)
    leader_epoch: int = i32(default=-1)
    voted_id: int = i32(default=-1)
    voted_directory_id: bytes = uuid("1+", default=ZERO_UUID)
    applied_offset: int = i64("0", default=0)
    current_voters: list[Voter] | None = array(Voter, "0", nullable=True, default=None)
