"""RemoveRaftVoter (API key 81): take a voter out of the quorum (KIP-853).

v0 is the only version, flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import i16, i32, message, string, uuid


@message(api_key=81, versions="0", flexible="0+", listeners="controller broker")
class RemoveRaftVoterRequest:
    cluster_id: str | None = string(nullable=True)
    voter_id: int = i32()
    voter_directory_id: bytes = uuid()


@message(api_key=81, versions="0", flexible="0+")
class RemoveRaftVoterResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
