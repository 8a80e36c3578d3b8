"""The parts of a transition: the answer alone, and the records of a change."""

from __future__ import annotations

from pykafka_broker.coordinator.share.core.records import Record, applied
from pykafka_broker.coordinator.share.core.state import ShareEntry, Shares
from pykafka_broker.machine.step import Effect, Reply, Step
from pykafka_broker.protocol.topic_partition import SharePartitionKey
from pykafka_broker.system.named_tuple import NamedTuple


class Log(NamedTuple):
    """What a transition has to know of its log."""

    #: The offset of the next record.
    end_offset: int
    updates_per_snapshot: int


def answer(state: Shares, token: int, result: object) -> Step[Shares]:
    """Answer a request and change nothing."""
    return Step(state, effects=(Reply(token, result),))


def written(state: Shares, log: Log, records: list[Record], *effects: Effect) -> Step[Shares]:
    """The state after these records, each of another share partition, and the effects that follow."""
    changed: dict[SharePartitionKey, ShareEntry] = {}
    forgotten: list[SharePartitionKey] = []
    deletion_offset = state.deletion_offset
    for offset, record in enumerate(records, log.end_offset):
        entry = applied(state.by_key.get(record.key), record, offset, log.updates_per_snapshot)
        if entry is None:
            forgotten.append(record.key)
            deletion_offset = offset
        else:
            changed[record.key] = entry
    by_key = state.by_key.with_changes(changed, forgotten) if records else state.by_key
    return Step(Shares(by_key, deletion_offset), tuple(records), effects)
