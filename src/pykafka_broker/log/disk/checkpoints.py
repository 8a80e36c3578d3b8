"""The small text files of a log directory: bytes to values and back. Pure; callers read and replace the
files.

* offset checkpoints (`recovery-point-`, `log-start-` and `replication-offset-checkpoint`): `topic partition
  offset`;
* `leader-epoch-checkpoint`: `epoch start_offset`;
* `partition.metadata`: the topic id of the folder; `meta.properties`: whose directory this is;
* `.kafka_cleanshutdown`: the directory was closed in order, by the broker of that epoch.

Checkpoints begin with a version line and a count line; an empty file has no entries. Kafka does not start
when one of them is garbage. Here every reader raises `MalformedFile`, and the owner of the partition sets the
file aside and goes on with the log alone.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Iterable

from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.system.named_tuple import NamedTuple

_RESERVED_IDS = 100


class MalformedFile(Exception):
    """The content of the file is not valid for a file of this name."""


class EpochEntry(NamedTuple):
    """Batches from `start_offset` on were appended under `epoch`, until the next entry starts."""

    epoch: int
    start_offset: int


def encode_offsets(offsets: Iterable[tuple[PartitionKey, int]]) -> bytes:
    """An offset checkpoint."""
    return _encode([f"{topic} {partition} {offset}" for (topic, partition), offset in offsets])


def decode_offsets(data: bytes) -> dict[PartitionKey, int]:
    """An offset checkpoint's entries."""
    offsets = {}
    for line in _decode(data):
        try:
            topic, partition, offset = line.split()
            offsets[topic, int(partition)] = int(offset)
        except ValueError:
            raise MalformedFile(f"not an offset entry: {line!r}") from None
    return offsets


def find_offset(data: bytes, key: PartitionKey) -> int | None:
    """One entry of a well-formed offset checkpoint, if it has it, without reading the others."""
    topic, partition = key
    begins = f"\n{topic} {partition} ".encode()
    at = data.find(begins)
    return None if at < 0 else int(data[at + len(begins) : data.index(b"\n", at + len(begins))])


def encode_epochs(entries: Iterable[EpochEntry]) -> bytes:
    """`leader-epoch-checkpoint`."""
    return _encode([f"{entry.epoch} {entry.start_offset}" for entry in entries])


def decode_epochs(data: bytes) -> list[EpochEntry]:
    """The entries of `leader-epoch-checkpoint`; epochs and offsets must ascend."""
    entries: list[EpochEntry] = []
    for line in _decode(data):
        try:
            epoch, start_offset = line.split()
            entry = EpochEntry(int(epoch), int(start_offset))
        except ValueError:
            raise MalformedFile(f"not an epoch entry: {line!r}") from None
        if min(entry) < 0 or (entries and not (entries[-1][0] < entry[0] and entries[-1][1] <= entry[1])):
            raise MalformedFile(f"epoch entry out of order: {line!r}")
        entries.append(entry)
    return entries


def _encode(lines: list[str]) -> bytes:
    return "".join([f"{line}\n" for line in ("0", str(len(lines)), *lines)]).encode()


def _decode(data: bytes) -> list[str]:
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        raise MalformedFile("not text") from None
    if not lines:
        return []
    if lines[0] != "0":
        raise MalformedFile(f"unknown version {lines[0]!r}")
    if len(lines) < 2 or not lines[1].isdecimal():
        raise MalformedFile("no entry count")
    entries = lines[2:]
    if len(entries) != int(lines[1]):
        raise MalformedFile(f"{len(entries)} entries where {lines[1]} are announced")
    return entries


def uuid_of(drawn: bytes) -> bytes | None:
    """The id that Kafka makes of 16 random bytes; None if Kafka would draw again: the id is reserved, or its
    text begins with a dash, like an option on a command line.
    """
    value = bytearray(drawn)
    value[6] = value[6] & 0x0F | 0x40
    value[8] = value[8] & 0x3F | 0x80
    uuid = bytes(value)
    return None if is_reserved_id(uuid) or uuid_text(uuid).startswith("-") else uuid


def is_reserved_id(value: bytes | bytearray) -> bool:
    """Whether the protocol reserves an id: for "unassigned", "lost", the metadata topic."""
    return int.from_bytes(value, "big") < _RESERVED_IDS


def uuid_bytes(text: str) -> bytes:
    """The inverse of `uuid_text`; MalformedFile if it is no id."""
    try:
        value = urlsafe_b64decode(text + "==")
    except ValueError:
        value = b""
    if len(value) != 16:
        raise MalformedFile(f"not an id: {text!r}")
    return value


def encode_partition_metadata(topic_id: bytes) -> bytes:
    """`partition.metadata`; Kafka ends it without a newline."""
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()


def decode_partition_metadata(data: bytes) -> bytes:
    """The topic id in `partition.metadata`."""
    values = _properties(data, ":")
    if values.get("version") != "0" or "topic_id" not in values:
        raise MalformedFile("not a partition.metadata file")
    return uuid_bytes(values["topic_id"])


class MetaProperties(NamedTuple):
    """`meta.properties`: the ids of cluster, node and directory; None where the file does not say."""

    cluster_id: str | None
    node_id: int | None
    directory_id: bytes | None


def encode_meta_properties(meta: MetaProperties) -> bytes:
    """`meta.properties`, version 1. As in Apache Kafka, any text may be the id of a cluster."""
    lines = ["#"]
    if meta.cluster_id is not None:
        lines.append(_java_property("cluster.id", meta.cluster_id))
    if meta.directory_id is not None:
        lines.append(f"directory.id={uuid_text(meta.directory_id)}")
    if meta.node_id is not None:
        lines.append(f"node.id={meta.node_id}")
    lines.append("version=1")
    return "".join([f"{line}\n" for line in lines]).encode()


def decode_meta_properties(data: bytes) -> MetaProperties:
    """Read `meta.properties`; version 0 (before KRaft) calls the node `broker.id`."""
    values = _java_properties(data) if b"\\" in data else _properties(data, "=")
    if values.get("version") not in ("0", "1"):
        raise MalformedFile(f"meta.properties has the unknown version {values.get('version')!r}")
    node_id = values.get("node.id", values.get("broker.id"))
    if node_id is not None and not node_id.removeprefix("-").isdecimal():
        raise MalformedFile(f"meta.properties has the node id {node_id!r}")
    if values["version"] != "0":
        for key in ("cluster.id", "node.id"):
            if key not in values:
                raise MalformedFile(f"{key} was not found")
    directory_id = values.get("directory.id")
    return MetaProperties(
        values.get("cluster.id"),
        None if node_id is None else int(node_id),
        None if directory_id is None else uuid_bytes(directory_id),
    )


def _java_property(key: str, value: str) -> str:
    """A line of a Java properties file."""
    if value.isascii() and value.replace("-", "").replace("_", "").isalnum():
        return f"{key}={value}"
    import javaproperties  # takes longer to import than a start can spare, and ids drawn at random need none

    return javaproperties.join_key_value(key, value)


def _java_properties(data: bytes) -> dict[str, str]:
    """A Java properties file that has escapes."""
    import javaproperties

    try:
        return dict(javaproperties.loads(data.decode()))
    except (UnicodeDecodeError, javaproperties.InvalidUEscapeError):
        raise MalformedFile("not a properties file") from None


def _properties(data: bytes, separator: str) -> dict[str, str]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise MalformedFile("not text") from None
    pairs = [
        line.partition(separator)
        for line in text.splitlines()
        if line.strip() and line.lstrip()[0] not in "#!"
    ]
    return {key.strip(): value.strip() for key, _, value in pairs}


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    """`.kafka_cleanshutdown`."""
    return b'{"version":0,"brokerEpoch":%d}' % broker_epoch


def decode_clean_shutdown(data: bytes) -> int:
    """The broker epoch of a clean stop; -1 if the file has none (the stop still counts as clean)."""
    import re

    match = re.search(rb'"brokerEpoch"\s*:\s*(-?\d+)', data)
    return int(match[1]) if match else -1
