"""Control records: the keys and values inside control batches, of transactions and of the raft protocol.

The key is ControlRecordTypeSchema after a version (int16); its type is that of the value: 0 and 1
EndTxnMarker (abort, commit), 2 LeaderChangeMessage, 3 SnapshotHeaderRecord, 4 SnapshotFooterRecord, 5
KRaftVersionRecord, 6 VotersRecord. The raft values begin with their own version as an ordinary field.
"""

from __future__ import annotations

from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.schema import array, i16, i32, i64, message, string, struct, u16, uuid


@message(versions="0")
class ControlRecordTypeSchema:
    type: int = i16()


@message(versions="0")
class EndTxnMarker:
    coordinator_epoch: int = i32()


@message()
class LeaderChangeMessageVoter:
    voter_id: int = i32()
    voter_directory_id: bytes = uuid("1+", default=ZERO_UUID)


@message(versions="0-1", flexible="0+")
class LeaderChangeMessage:
    version: int = i16()
    leader_id: int = i32(entity="broker_id")
    voters: list[LeaderChangeMessageVoter] = array(LeaderChangeMessageVoter)
    granting_voters: list[LeaderChangeMessageVoter] = array(LeaderChangeMessageVoter)


@message(versions="0", flexible="0+")
class SnapshotHeaderRecord:
    version: int = i16()
    last_contained_log_timestamp: int = i64()


@message(versions="0", flexible="0+")
class SnapshotFooterRecord:
    version: int = i16()


@message(versions="0", flexible="0+")
class KRaftVersionRecord:
    version: int = i16()
    kraft_version: int = i16()


@message()
class Endpoint:
    name: str = string()
    host: str = string()
    port: int = u16()


@message()
class KRaftVersionFeature:
    min_supported_version: int = i16()
    max_supported_version: int = i16()


@message()
class VotersRecordVoter:
    voter_id: int = i32(entity="broker_id")
    voter_directory_id: bytes = uuid()
    endpoints: list[Endpoint] = array(Endpoint)
    kraft_version_feature: KRaftVersionFeature = struct(KRaftVersionFeature)


@message(versions="0", flexible="0+")
class VotersRecord:
    version: int = i16()
    voters: list[VotersRecordVoter] = array(VotersRecordVoter)
