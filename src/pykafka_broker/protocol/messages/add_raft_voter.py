"""AddRaftVoter (API key 80): make a controller a voter of the quorum (KIP-853).

v0 flexible, v1 may answer before the change is committed.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, boolean, i16, i32, message, string, u16, uuid


@message()
class Listener:
    name: str = string()
    host: str = string()
    port: int = u16()


@message(api_key=80, versions="0-1", flexible="0+", listeners="controller broker")
class AddRaftVoterRequest:
    cluster_id: str | None = string(nullable=True)
    timeout_ms: int = i32()
    voter_id: int = i32()
    voter_directory_id: bytes = uuid()
    listeners: list[Listener] = array(Listener)
    ack_when_committed: bool = boolean("1+", default=True)


@message(api_key=80, versions="0-1", flexible="0+")
class AddRaftVoterResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)
