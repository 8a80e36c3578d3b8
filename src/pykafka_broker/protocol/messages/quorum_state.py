"""QuorumStateData (API key None)."""

from __future__ import annotations

from pykafka_broker.protocol.schema import ZERO_UUID, array, i32, i64, message, string, uuid


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
