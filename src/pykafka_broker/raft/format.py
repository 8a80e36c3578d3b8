"""Formatting: the files of a new node, as `kafka-storage format` writes them.

    <log dir>/meta.properties           the cluster, the node and this directory's own id
    <log dir>/bootstrap.checkpoint      the first records of the metadata log: the feature levels
    <metadata dir>/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint
                                        the first voters: this node, in this directory (`--standalone`),
                                        or those of `--initial-controllers`

The last file is missing if the configuration names the voters (`controller.quorum.voters`, kraft.version 0),
or if the quorum exists already (`--no-initial-controllers`).
`meta.properties` of the metadata directory is written last; a directory with that file counts as formatted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import urandom

from pykafka_broker.log.disk.checkpoints import (
    MalformedFile,
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
    uuid_of,
)
from pykafka_broker.log.disk.files import FileSystem, join
from pykafka_broker.log.disk.names import (
    BOOTSTRAP_CHECKPOINT,
    META_PROPERTIES,
    METADATA_TOPIC,
    partition_folder,
)
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.raft.core.log_view import BOOTSTRAP_SNAPSHOT
from pykafka_broker.raft.core.quorum import ReplicaKey, Voter, VoterSet
from pykafka_broker.raft.snapshots import encode_snapshot
from pykafka_broker.system.named_tuple import NamedTuple

METADATA_FOLDER = partition_folder(METADATA_TOPIC, 0)


class StorageFormatError(Exception):
    """The directories cannot be formatted; the text says why and what to do."""


class NewNode(NamedTuple):
    """The node that directories are formatted for.

    `bootstrap_values` are framed metadata records. `controller_endpoints` has the endpoints of this node as
    the only voter; None if the configuration or `initial_voters` names the voters. Without a `cluster_id` the
    node begins a new cluster, unless one of its directories belongs to a cluster already.
    """

    node_id: int
    bootstrap_values: tuple[bytes, ...]
    controller_endpoints: Mapping[str, tuple[str, int]] | None
    cluster_id: str | None = None
    #: The first voters of a quorum of several nodes (`--initial-controllers`).
    initial_voters: VoterSet | None = None

    def voters_with(self, directory_id: bytes) -> VoterSet | None:
        """The first voters to write, if this node's metadata directory has this id."""
        if self.controller_endpoints is None:
            return self.initial_voters
        voter = Voter(ReplicaKey(self.node_id, directory_id), self.controller_endpoints)
        return VoterSet({self.node_id: voter})

    def new_directory_id(self, *, is_metadata: bool) -> bytes:
        """The id of a directory to format: a random one, or the one that the first voters name."""
        own = None if self.initial_voters is None else self.initial_voters.voters.get(self.node_id)
        return own.key.directory_id if own is not None and is_metadata else random_uuid()

    @property
    def kind_of_metadata_directory(self) -> str:
        """The kind of the metadata directory in `kafka-storage format`'s words."""
        if self.controller_endpoints is None and self.initial_voters is None:
            return "metadata directory"
        if self.initial_voters is None or self.node_id in self.initial_voters.voters:
            return "dynamic metadata voter directory"
        return "dynamic metadata directory"


class Formatted(NamedTuple):
    """The result of formatting."""

    cluster_id: str
    #: Directory id by log directory; only of those formatted by this call.
    directory_ids: dict[str, bytes]
    #: The kind of each of them, as `kafka-storage format` calls it.
    kinds: dict[str, str]


def random_uuid() -> bytes:
    """A random id, none of those that Kafka reserves."""
    while (uuid := uuid_of(urandom(16))) is None:
        pass
    return uuid


def is_formatted(files: FileSystem, directory: str) -> bool:
    """Whether a log directory belongs to a cluster already."""
    return files.exists(join(directory, META_PROPERTIES))


def format_storage(
    files: FileSystem,
    directories: Sequence[str],
    node: NewNode,
    *,
    now_ms: int,
    metadata_directory: str | None = None,
    ignore_formatted: bool = False,
) -> Formatted:
    """Make `directories` the storage of `node`.

    The metadata log goes to `metadata_directory`, by default the first one. With `ignore_formatted`,
    directories that belong to the cluster already are left as they are.

    Raises:
        StorageFormatError: a directory belongs to another node or cluster, or is formatted already.
    """
    metadata_directory = metadata_directory or directories[0]
    every_directory = list(dict.fromkeys([*directories, metadata_directory]))
    found = {d: _read(files, d) for d in every_directory if is_formatted(files, d)}
    cluster_id = _agreed_cluster_id(found, node, ignore_formatted)

    directory_ids = {
        d: node.new_directory_id(is_metadata=d == metadata_directory)
        for d in every_directory
        if d not in found
    }
    bootstrap = encode_snapshot(node.bootstrap_values, None, last_timestamp_ms=0, now_ms=now_ms)
    # The metadata directory last, and its meta.properties last.
    for directory in sorted(directory_ids, key=lambda d: d == metadata_directory):
        files.make_directory(directory)
        directory_id = directory_ids[directory]
        files.replace_file(join(directory, BOOTSTRAP_CHECKPOINT), bootstrap, sync=True)
        voters = node.voters_with(directory_id)
        if directory == metadata_directory and voters is not None:
            _write_first_voters(files, directory, voters, now_ms)
        meta = MetaProperties(cluster_id, node.node_id, directory_id)
        files.replace_file(join(directory, META_PROPERTIES), encode_meta_properties(meta), sync=True)
    kinds = {
        d: node.kind_of_metadata_directory if d == metadata_directory else "data directory"
        for d in directory_ids
    }
    return Formatted(cluster_id, directory_ids, kinds)


def _write_first_voters(files: FileSystem, directory: str, voters: VoterSet, now_ms: int) -> None:
    folder = join(directory, METADATA_FOLDER)
    files.make_directory(folder)
    first_voters = encode_snapshot((), voters, last_timestamp_ms=now_ms, now_ms=now_ms)
    files.replace_file(join(folder, BOOTSTRAP_SNAPSHOT.file_name), first_voters, sync=True)


def _read(files: FileSystem, directory: str) -> MetaProperties:
    path = join(directory, META_PROPERTIES)
    try:
        return decode_meta_properties(files.read_file(path))
    except MalformedFile as error:
        raise StorageFormatError(
            f"{path} cannot be used: {error}. Remove it only if nothing here is needed."
        ) from None


def _agreed_cluster_id(found: dict[str, MetaProperties], node: NewNode, ignore_formatted: bool) -> str:
    """The cluster id to use; StorageFormatError if the formatted directories do not fit."""
    cluster_id = node.cluster_id
    for directory, meta in found.items():
        if not ignore_formatted:
            raise StorageFormatError(
                f"Log directory {directory} is already formatted. Use --ignore-formatted to ignore this "
                "directory and format the others."
            )
        if cluster_id is not None and meta.cluster_id != cluster_id:
            raise StorageFormatError(
                f"Log directory {directory} belongs to cluster {meta.cluster_id}, not to {cluster_id}."
            )
        if meta.node_id != node.node_id:
            raise StorageFormatError(
                f"Log directory {directory} belongs to node {meta.node_id}, not to {node.node_id}."
            )
        cluster_id = cluster_id or meta.cluster_id
    return cluster_id or uuid_text(random_uuid())
