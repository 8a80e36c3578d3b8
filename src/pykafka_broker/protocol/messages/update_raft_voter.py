"""UpdateRaftVoter (API key 82): a voter tells the leader its endpoints and versions (KIP-853).

v0 is the only version, flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, message, string, struct, u16, uuid


@message()
class Listener:
    name: str = string()
    host: str = string()
    port: int = u16()


@message()
class KRaftVersionFeature:
    min_supported_version: int = i16()
    max_supported_version: int = i16()


@message(api_key=82, versions="0", flexible="0+", listeners="controller")
class UpdateRaftVoterRequest:
    cluster_id: str | None = string(nullable=True)
    current_leader_epoch: int = i32()
    voter_id: int = i32()
    voter_directory_id: bytes = uuid()
    listeners: list[Listener] = array(Listener)
    kraft_version_feature: KRaftVersionFeature = struct(KRaftVersionFeature)


@message()
class CurrentLeader:
    leader_id: int = i32(default=-1, entity="broker_id")
    leader_epoch: int = i32(default=-1)
    host: str = string()
    port: int = i32()


@message(api_key=82, versions="0", flexible="0+")
class UpdateRaftVoterResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    current_leader: CurrentLeader | None = struct(CurrentLeader, tag=0, default=None)
