"""The metadata log of this node, opened from its metadata directory."""

from __future__ import annotations

from collections.abc import Callable

from pykafka_broker.broker.voters import configured_voters
from pykafka_broker.cluster.image import CorruptMetadataError
from pykafka_broker.config import BrokerConfig
from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.checkpoints import MalformedFile
from pykafka_broker.log.disk.directories import LogDirError
from pykafka_broker.log.disk.environment import UNHEARD, DiskEvents, Environment, FileJobs
from pykafka_broker.log.disk.files import FileSystem, join
from pykafka_broker.log.disk.names import (
    BOOTSTRAP_CHECKPOINT,
    CLEAN_SHUTDOWN_FILE,
    LOG_SUFFIX,
    METADATA_TOPIC,
    OFFSETS_SUFFIX,
    parse_partition_folder,
)
from pykafka_broker.log.disk.start_reserve import RESERVE_FILE
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.recovery.load_partition import open_log
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.protocol.topic_partition import METADATA_TOPIC_ID
from pykafka_broker.raft.driver import OtherVotersError
from pykafka_broker.raft.format import METADATA_FOLDER
from pykafka_broker.raft.quorum_state import QUORUM_STATE
from pykafka_broker.raft.snapshots import parse_snapshot_name
from pykafka_broker.raft.storage import RaftStorage

#: The metadata log rolls early: it is small, and only whole segments below a snapshot can be removed.
METADATA_SEGMENT_BYTES = 64 * 1024 * 1024
#: The errors of a metadata log that this version cannot use.
UNREADABLE_METADATA = (CorruptMetadataError, MalformedFile, OtherVotersError)


def unusable_metadata(config: BrokerConfig, error: Exception) -> LogDirError:
    """The error of a start that cannot use the metadata log, with its cause and the remedy."""
    return LogDirError(
        f"The metadata log in {join(config.metadata_log_dir, METADATA_FOLDER)} cannot be used: {error}. "
        "Start the version of the software that wrote it, or restore the folder from a backup."
    )


def open_metadata_log(
    files: FileSystem,
    config: BrokerConfig,
    *,
    now_ms: int,
    run_later: Callable[[Callable[[], object]], None],
    on_write_failed: Callable[[OSError], None] | None = None,
) -> RaftStorage:
    """The replica of the metadata log in this node's metadata directory. Blocking.

    After formatting its folder may be missing: `kafka-storage format` makes it only for the first voters.

    Raises:
        LogDirError: another directory has the metadata log.
        MalformedFile: no directory has it, although the directories have been in use, or the folder has
            neither a segment nor a snapshot, although this node has taken part in elections.
    """
    parent = config.metadata_log_dir
    directory = join(parent, METADATA_FOLDER)
    if not files.exists(directory):
        for other in config.log_dirs:
            if files.exists(join(other, METADATA_FOLDER)):
                raise LogDirError(
                    f"The metadata log is in {other}, and is looked for in {parent}. "
                    f"Name {other} first in log.dirs, or as metadata.log.dir."
                )
        if used := _sign_of_use(files, config):
            raise MalformedFile(f"the folder is missing although the directory was in use: it has {used}")
    environment = Environment(
        files,
        FileJobs(run_later, run_in_turn=run_later),
        UNHEARD if on_write_failed is None else DiskEvents(on_write_failed=on_write_failed),
    )
    identity = LogIdentity(directory, METADATA_TOPIC, 0, METADATA_TOPIC_ID)
    if _has_log(files, directory):
        log = open_log(
            environment,
            identity,
            _metadata_log_config(config),
            clean=files.exists(join(parent, CLEAN_SHUTDOWN_FILE)),
            now_ms=now_ms,
        )
    elif _has_lost_its_log(files, directory):
        raise MalformedFile(f"no segment and no snapshot is left beside {QUORUM_STATE}")
    else:
        log = create_log(environment, identity, _metadata_log_config(config))
    return RaftStorage(files, log, configured_voters(config))


def _metadata_log_config(config: BrokerConfig) -> LogConfig:
    return LogConfig(
        segment_bytes=min(config["metadata.log.segment.bytes"], METADATA_SEGMENT_BYTES),
        segment_ms=config["metadata.log.segment.ms"],
        cleanup_policy=frozenset(),
    )


def _sign_of_use(files: FileSystem, config: BrokerConfig) -> str | None:
    """Why the directories count as used: an entry that formatting does not make, or the lack of
    `bootstrap.checkpoint`. None if they do not.
    """
    for parent in dict.fromkeys((config.metadata_log_dir, *config.log_dirs)):
        for entry in files.entries(parent) if files.exists(parent) else ():
            is_partition = entry.is_directory and parse_partition_folder(entry.name) is not None
            is_of_a_start = entry.name in (CLEAN_SHUTDOWN_FILE, RESERVE_FILE)
            if is_partition or is_of_a_start or entry.name.endswith(OFFSETS_SUFFIX):
                return join(parent, entry.name)
    bootstrap = join(config.metadata_log_dir, BOOTSTRAP_CHECKPOINT)
    return None if files.exists(bootstrap) else f"no {bootstrap}"


def _has_log(files: FileSystem, directory: str) -> bool:
    return files.exists(directory) and any(
        entry.name.endswith(LOG_SUFFIX) for entry in files.entries(directory)
    )


def _has_lost_its_log(files: FileSystem, directory: str) -> bool:
    """Whether segments were lost from a folder that has none.

    A replica that installs the leader's snapshot removes its segments before it begins the next one: a crash
    between the two leaves a snapshot above offset 0 and no segment, and nothing is lost.
    """
    names = [entry.name for entry in files.entries(directory)] if files.exists(directory) else []
    snapshots = [snapshot for snapshot in map(parse_snapshot_name, names) if snapshot is not None]
    return QUORUM_STATE in names and not any(snapshot.end_offset for snapshot in snapshots)
