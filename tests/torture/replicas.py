"""The replicas of every partition beside each other: below the high watermark they have the same batches,
byte by byte, however often a leader was lost and a follower truncated.

A compacted partition is cleaned by each node at a time of its own. There the newest committed record of each
key is the same, at the same offset.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping
from pathlib import Path

from pykafka_broker.log.disk.checkpoints import decode_offsets
from pykafka_broker.log.disk.names import METADATA_TOPIC, partition_folder
from pykafka_broker.protocol.records.batch import BatchHeader, iter_batches, read_records
from pykafka_broker.protocol.records.control import decode_marker
from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.testing.apache.nodes import Nodes
from pykafka_broker.testing.processes import BrokerError

#: How often a node must write its high watermarks down, so that they need not be waited for.
PROPERTIES = {"replica.high.watermark.checkpoint.interval.ms": "500"}
KeyAndValue = tuple[bytes | None, bytes | None]
CHECKPOINT = "replication-offset-checkpoint"
COMPACTED = ("__consumer_offsets", "__transaction_state")


def replica_differences(nodes: Nodes, compacted: Collection[str] = ()) -> list[str]:
    """Kill all nodes once nothing is left to replicate, and say what differs, with offset and nodes.

    `compacted` are topics beside the internal ones. Partitions of one replica are not looked at.
    """
    ends = replicated_ends(nodes)
    try:
        nodes.comes(lambda: not short_replicas(nodes, ends), "replicas stay behind")
    except BrokerError:
        return short_replicas(nodes, ends)
    committed = nodes.quorum().high_watermark
    for node in nodes:
        node.kill()
    found = []
    for (topic, partition), end in sorted(ends.items()):
        logs = {node.node_id: read_log(node.data_dir, topic, partition) for node in nodes}
        is_compacted = topic in (*COMPACTED, *compacted)
        differs = compacted_difference(logs, end) if is_compacted else difference(logs, end)
        found += [f"{topic}-{partition} {differs}"] if differs else []
    metadata = {node.node_id: read_log(node.data_dir, METADATA_TOPIC, 0) for node in nodes}
    # A majority has what is committed; and each node begins at the snapshot of its own choice.
    lengths = [[header for _, header in iter_batches(log)] for log in metadata.values()]
    start = max((headers[0].base_offset for headers in lengths if headers), default=0)
    end = min([committed, *(headers[-1].next_offset for headers in lengths if headers)])
    differs = difference(metadata, end, start)
    return found + ([f"{METADATA_TOPIC}-0 {differs}"] if differs else [])


def replicated_ends(nodes: Nodes) -> dict[PartitionKey, int]:
    """The high watermarks of all partitions with more than one replica.

    The greatest counts: a follower that was truncated hears of it again when it moves on.
    """
    files = [node.data_dir / CHECKPOINT for node in nodes]
    nodes.comes(lambda: all(file.exists() for file in files), f"a node has not written {CHECKPOINT}")
    told = [decode_offsets(file.read_bytes()) for file in files]
    held = Counter(key for each in told for key in each)
    return {key: max(each.get(key, 0) for each in told) for key, replicas in held.items() if replicas > 1}


def short_replicas(nodes: Nodes, ends: Mapping[PartitionKey, int]) -> list[str]:
    """Which replicas end before what is committed."""
    return [
        f"{partition_folder(*key)} ends at {at} on node {node.node_id} and is committed up to {end}"
        for key, end in ends.items()
        for node in nodes
        if (at := log_end(node.data_dir, *key)) < end
    ]


def log_end(data_dir: Path, topic: str, partition: int) -> int:
    """Where a replica ends; -1 if there is none."""
    newest = max((data_dir / partition_folder(topic, partition)).glob("*.log"), default=None)
    if newest is None:
        return -1
    ends = [header.next_offset for _, header in iter_batches(newest.read_bytes())]
    return ends[-1] if ends else int(newest.stem)


def read_log(data_dir: Path, topic: str, partition: int) -> bytes:
    """The batches of a replica."""
    segments = sorted((data_dir / partition_folder(topic, partition)).glob("*.log"))
    return b"".join(segment.read_bytes() for segment in segments)


def difference(logs: Mapping[int, bytes], end: int, start: int = 0) -> str | None:
    """Where batches from `start` to before `end` differ first, and between whom; None if nowhere."""
    return _first_difference(
        {
            node_id: {
                header.base_offset: (header.partition_leader_epoch, header.last_offset, batch)
                for header, batch in _batches(log, end)
                if header.base_offset >= start
            }
            for node_id, log in logs.items()
        }
    )


def compacted_difference(logs: Mapping[int, bytes], end: int) -> str | None:
    """Where the newest committed records of each key before `end` differ first; None if nowhere."""
    newest: dict[int, dict[int, Hashable]] = {}
    for node_id, log in logs.items():
        records = dict(_committed(log, end))
        offset_of = {key: offset for offset, (key, _) in sorted(records.items())}
        newest[node_id] = {offset: records[offset] for offset in offset_of.values()}
    return _first_difference(newest)


def _first_difference(found: Mapping[int, Mapping[int, Hashable]]) -> str | None:
    """Where nodes have something else at an offset."""
    for offset in sorted(set().union(*found.values())):
        nodes_of: dict[Hashable, list[int]] = {}
        for node_id, items in found.items():
            nodes_of.setdefault(items.get(offset), []).append(node_id)
        if len(nodes_of) > 1:
            told = (f"nodes {who} have {_short(what)}" for what, who in nodes_of.items())
            return f"differs at offset {offset}: {', '.join(told)}"
    return None


def _short(what: Hashable) -> str:
    return "nothing" if what is None else f"{what!r:.200}"


def _batches(log: bytes, end: int) -> Iterator[tuple[BatchHeader, bytes]]:
    for position, header in iter_batches(log):
        if header.base_offset >= end:
            return
        yield header, log[position : position + header.size_in_bytes]


def _committed(log: bytes, end: int) -> Iterator[tuple[int, KeyAndValue]]:
    """Key and value of each record by its offset, without those of transactions that are aborted or open."""
    under_way: dict[int, list[tuple[int, KeyAndValue]]] = {}
    for header, batch in _batches(log, end):
        if header.is_control:
            for record in read_records(batch):
                marker = decode_marker(record.key, record.value)
                written = under_way.pop(header.producer_id, [])
                if marker is not None and marker.commit:
                    yield from written
            continue
        records = [(record.offset, (record.key, record.value)) for record in read_records(batch)]
        if header.is_transactional:
            under_way.setdefault(header.producer_id, []).extend(records)
        else:
            yield from records
