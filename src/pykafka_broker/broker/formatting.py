"""Formatting of a node's log directories: by a command, or at the first start."""

from __future__ import annotations

from collections.abc import Mapping
from secrets import randbits

from pykafka_broker.broker.voters import first_voter_endpoint, is_alone, leaves_voters_open
from pykafka_broker.cluster.features import METADATA_VERSION_NAMES, bootstrap_records
from pykafka_broker.cluster.image import METADATA_VERSION
from pykafka_broker.cluster.records import encode_record
from pykafka_broker.config import BrokerConfig
from pykafka_broker.controller.core.initial_features import initial_levels
from pykafka_broker.controller.core.initial_scram import scram_records
from pykafka_broker.log.disk.files import FileSystem
from pykafka_broker.log.manager.log_manager import LogManager
from pykafka_broker.raft.format import Formatted, NewNode, StorageFormatError, format_storage, random_uuid
from pykafka_broker.raft.initial_controllers import parse_initial_controllers
from pykafka_broker.sasl.scram_keys import RANDOM_BITS, random_text
from pykafka_broker.system.named_tuple import NamedTuple


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
    is_first_voter = is_controller and not config.voters and voters is None and not new.no_initial_controllers
    if is_first_voter and not new.standalone and leaves_voters_open(config):
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
            first_voter_endpoint(config) if is_first_voter else None,
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
    if is_alone(config):
        return USUAL
    not_formatted = f"{config.metadata_log_dir} is not formatted"
    if leaves_voters_open(config):
        raise StorageFormatError(
            f"{not_formatted}. Because controller.quorum.voters is not set on this controller, run "
            "`pykafka-broker format` with one of the following: --standalone, --initial-controllers, or "
            "--no-initial-controllers."
        )
    if config.cluster_id is None:
        raise StorageFormatError(
            f"{not_formatted}, and all nodes of a cluster need the same cluster id: run "
            "`pykafka-broker format --cluster-id ID` on each of them first."
        )
    return USUAL
