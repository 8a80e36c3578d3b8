"""Preparing log directories: formatting, checks of cluster and node, and the metadata log's folder."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from secrets import randbits

from pykafka_broker.broker.start_reserve import RESERVE_FILE
from pykafka_broker.cluster.features import METADATA_VERSION_NAMES, bootstrap_records
from pykafka_broker.cluster.image import METADATA_VERSION, CorruptMetadataError
from pykafka_broker.cluster.records import encode_record
from pykafka_broker.config import BrokerConfig
from pykafka_broker.controller.core.initial_features import initial_levels
from pykafka_broker.controller.core.initial_scram import scram_records
from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.checkpoints import MalformedFile
from pykafka_broker.log.disk.directories import LogDirError
from pykafka_broker.log.disk.environment import UNHEARD, DiskEvents, Environment, FileJobs
from pykafka_broker.log.disk.files import FileSystem, join
from pykafka_broker.log.disk.names import (
    CLEAN_SHUTDOWN_FILE,
    METADATA_TOPIC,
    OFFSETS_SUFFIX,
    parse_partition_folder,
)
from pykafka_broker.log.manager.log_manager import LogManager
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.recovery.load_partition import open_log
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.raft.core.quorum import Endpoints, ReplicaKey, Voter, VoterSet
from pykafka_broker.raft.driver import OtherVotersError
from pykafka_broker.raft.format import (
    METADATA_FOLDER,
    Formatted,
    NewNode,
    StorageFormatError,
    format_storage,
    random_uuid,
)
from pykafka_broker.raft.initial_controllers import parse_initial_controllers, written_host
from pykafka_broker.raft.snapshots import BOOTSTRAP_CHECKPOINT
from pykafka_broker.raft.storage import RaftStorage
from pykafka_broker.raft.topic import METADATA_TOPIC_ID
from pykafka_broker.sasl.scram_keys import RANDOM_BITS, random_text
from pykafka_broker.system.named_tuple import NamedTuple

#: The recorded address of a controller that no other node needs to reach.
UNREACHED_CONTROLLER = ("localhost", 9093)
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


class NewCluster(NamedTuple):
    """The options of formatting besides the configuration."""

    release_version: str | None = None
    features: Mapping[str, int] = {}
    standalone: bool = False
    initial_controllers: str | None = None
    no_initial_controllers: bool = False
    #: The arguments of `--add-scram`, which hold passwords.
    scram: tuple[str, ...] = ()


#: No options.
USUAL = NewCluster()


def format_directories(
    files: FileSystem,
    config: BrokerConfig,
    *,
    now_ms: int,
    ignore_formatted: bool,
    new: NewCluster = USUAL,
) -> Formatted:
    """Format every directory of the node that is not formatted yet.

    A node without `controller.quorum.voters` is a quorum by itself unless `new`, or other addresses in
    `controller.quorum.bootstrap.servers`, say otherwise.

    Raises:
        StorageFormatError: a directory belongs to another node or cluster, or must not be formatted yet; or
            the options are invalid, or do not determine the quorum.
    """
    if config.voters and (new.standalone or new.initial_controllers is not None):
        raise StorageFormatError(
            "You cannot specify controller.quorum.voters and format the node with --initial-controllers or "
            "--standalone. If you want to use dynamic quorum, please remove controller.quorum.voters and "
            "specify controller.quorum.bootstrap.servers instead."
        )
    is_controller = "controller" in config.process_roles
    if new.standalone and not is_controller:
        raise StorageFormatError("You can only use --standalone on a controller.")
    try:
        levels = initial_levels(new.release_version, new.features, is_quorum_dynamic=not config.voters)
        voters = None
        if new.initial_controllers is not None:
            voters = parse_initial_controllers(new.initial_controllers, config.controller_listener_names[0])
        users = scram_records(new.scram, levels[METADATA_VERSION], new_salt)
    except ValueError as error:
        raise StorageFormatError(str(error)) from None
    is_alone = is_controller and not config.voters and voters is None and not new.no_initial_controllers
    if is_alone and not new.standalone and len(config["controller.quorum.bootstrap.servers"]) > 1:
        raise StorageFormatError(
            "Because controller.quorum.voters is not set on this controller, you must specify one of the "
            "following: --standalone, --initial-controllers, or --no-initial-controllers."
        )
    level = levels[METADATA_VERSION]
    return format_storage(
        files,
        config.log_dirs,
        NewNode(
            config.node_id,
            tuple(encode_record(record, level) for record in (*bootstrap_records(levels), *users)),
            first_voter_endpoint(config) if is_alone else None,
            config.cluster_id,
            voters,
        ),
        now_ms=now_ms,
        metadata_directory=config.metadata_log_dir,
        ignore_formatted=ignore_formatted,
    )


def new_salt() -> bytes:
    """A salt like those that Apache Kafka makes."""
    return random_text(randbits(RANDOM_BITS)).encode()


def first_voter_endpoint(config: BrokerConfig) -> dict[str, tuple[str, int]]:
    """The address of this controller that `--standalone` writes: the advertised one of its first listener."""
    name = config.controller_listener_names[0]
    told = config.advertised_controller_listeners or config.controller_listeners
    if not told:
        return {name: UNREACHED_CONTROLLER}
    host = told[0].host
    # Other nodes cannot connect to a wildcard address, but perhaps to this machine's name.
    return {name: (socket.getfqdn() if host in ("", "0.0.0.0", "::") else written_host(host), told[0].port)}


def metadata_version_name(new: NewCluster = USUAL) -> str:
    """The name of the metadata.version that formatting gives."""
    levels = initial_levels(new.release_version, new.features, is_quorum_dynamic=True)
    return METADATA_VERSION_NAMES[levels[METADATA_VERSION]]


def prepare_directories(
    files: FileSystem, logs: LogManager, config: BrokerConfig, *, now_ms: int
) -> tuple[str, Formatted | None]:
    """Lock the directories, format them at the first start, and check that they are this node's. Blocking.

    Returns the cluster id, and the result if directories were formatted.

    Raises:
        LogDirError, StorageFormatError: this node may not use these directories; the text says what to do.
    """
    logs.dirs.lock()
    formatted = None
    meta = logs.dirs.read_meta(logs.dirs.metadata)
    if meta is None:
        logs.dirs.refuse_unformatted_data()
        formatted = format_directories(
            files, config, now_ms=now_ms, ignore_formatted=True, new=_cluster_at_start(config)
        )
        cluster_id = formatted.cluster_id
    else:
        logs.dirs.refuse_unformatted()
        cluster_id = config.cluster_id or meta.cluster_id or ""
    logs.dirs.check_meta(node_id=config.node_id, cluster_id=cluster_id, new_directory_id=random_uuid)
    return cluster_id, formatted


def _cluster_at_start(config: BrokerConfig) -> NewCluster:
    """The options with which a start formats directories, if the configuration determines the quorum.

    Raises:
        StorageFormatError: the configuration does not determine the quorum, or has no cluster id.
    """
    if config.initial_controllers is not None:
        return NewCluster(initial_controllers=config.initial_controllers)
    directory, controllers = config.metadata_log_dir, config["controller.quorum.bootstrap.servers"]
    if "controller" in config.process_roles:
        if len(config.voters) <= 1 and len(controllers) <= 1:
            return USUAL
        if not config.voters:
            raise StorageFormatError(
                f"{directory} is not formatted. Because controller.quorum.voters is not set on this "
                "controller, run `pykafka-broker format` with one of the following: --standalone, "
                "--initial-controllers, or --no-initial-controllers."
            )
    if config.cluster_id is None:
        raise StorageFormatError(
            f"{directory} is not formatted, and all nodes of a cluster need the same cluster id: run "
            "`pykafka-broker format --cluster-id ID` on each of them first."
        )
    return USUAL


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
        MalformedFile: no directory has it, although the directories have been in use.
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
    """The first entry of the log directories that formatting does not make, or None."""
    for parent in dict.fromkeys((config.metadata_log_dir, *config.log_dirs)):
        for entry in files.entries(parent) if files.exists(parent) else ():
            is_partition = entry.is_directory and parse_partition_folder(entry.name) is not None
            is_of_a_start = entry.name in (CLEAN_SHUTDOWN_FILE, RESERVE_FILE)
            if is_partition or is_of_a_start or entry.name.endswith(OFFSETS_SUFFIX):
                return join(parent, entry.name)
    bootstrap = join(config.metadata_log_dir, BOOTSTRAP_CHECKPOINT)
    return None if files.exists(bootstrap) else f"no {bootstrap}"


def _has_log(files: FileSystem, directory: str) -> bool:
    return files.exists(directory) and any(entry.name.endswith(".log") for entry in files.entries(directory))


def local_voter(config: BrokerConfig, logs: LogManager, own_endpoints: Endpoints) -> Voter:
    """The node as a voter of the quorum: its id, its metadata directory's id, and its endpoints."""
    key = ReplicaKey(config.node_id, logs.dirs.metadata.directory_id)
    if own_endpoints or "controller" not in config.process_roles:
        return Voter(key, own_endpoints)
    return Voter(key, {config.controller_listener_names[0]: UNREACHED_CONTROLLER})


def configured_voters(config: BrokerConfig) -> VoterSet:
    """The voters of `controller.quorum.voters`: those of a metadata log that names none (kraft.version 0)."""
    name = config.controller_listener_names[0]
    return VoterSet(
        {
            voter.node_id: Voter(ReplicaKey(voter.node_id), {name: (voter.host, voter.port)})
            for voter in config.voters
        }
    )
