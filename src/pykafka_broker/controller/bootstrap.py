"""The first records of a new leader.

They abort a metadata transaction that the previous leader left unfinished. An empty log begins with the
records that formatting has put into `bootstrap.checkpoint`: feature levels, perhaps SCRAM credentials.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pykafka_broker.cluster.features import ELR_VERSION
from pykafka_broker.cluster.image import METADATA_VERSION
from pykafka_broker.cluster.records import decode_record
from pykafka_broker.controller.core.feature_control import elr_safety_records
from pykafka_broker.controller.core.state import ControllerState
from pykafka_broker.log.disk.files import FileSystem, join
from pykafka_broker.log.disk.names import BOOTSTRAP_CHECKPOINT
from pykafka_broker.protocol.messages.records import metadata as m
from pykafka_broker.raft.snapshots import decode_snapshot

#: metadata.version 3.6-IV1: older versions lack the records that begin and end a transaction.
METADATA_TRANSACTIONS_VERSION = 13


def read_bootstrap_records(files: FileSystem, metadata_directory: str) -> tuple[object, ...]:
    """The records of `bootstrap.checkpoint`, with which an empty log begins.

    Raises:
        OSError, MalformedFile, CorruptMetadataError: `bootstrap.checkpoint` cannot be read.
    """
    data = files.read_file(join(metadata_directory, BOOTSTRAP_CHECKPOINT))
    return tuple(decode_record(value) for value in decode_snapshot(data).values)


def feature_levels(records: Iterable[object]) -> dict[str, int]:
    """The feature levels that records set."""
    return {r.name: r.feature_level for r in records if isinstance(r, m.FeatureLevelRecord)}


def first_records(
    state: ControllerState, bootstrap: Sequence[object], *, in_transaction: bool
) -> tuple[object, ...]:
    """The first records of a new leader, over `state`; `bootstrap` is empty if the log has begun already.

    As in Kafka, the bootstrap records are one metadata transaction if metadata.version is 3.6-IV1 or later.
    """
    records: list[object] = []
    if in_transaction:
        records.append(m.AbortTransactionRecord(reason="Controller failover"))
    if bootstrap:
        levels = feature_levels(bootstrap)
        first = list(bootstrap)
        if levels.get(ELR_VERSION):
            first += elr_safety_records(state)
        if levels.get(METADATA_VERSION, 0) >= METADATA_TRANSACTIONS_VERSION:
            first = [
                m.BeginTransactionRecord(name="Bootstrap records"),
                *first,
                m.EndTransactionRecord(),
            ]
        records += first
    return tuple(records)
