"""The log directories of a node: locked against other processes, checked for their owner, in or out of
service.

Order of a start: `lock` (a second process is refused before it touches anything), then `check_meta` (another
cluster's or node's directory is refused). The logs in a directory are opened by
`recovery/open_directories.py`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

from pykafka_broker.log.disk.checkpoints import (
    MalformedFile,
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
)
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.disk.files import FileLockedError, FileSystem, Lock, absolute, directory_name, join
from pykafka_broker.log.disk.names import LOCK_FILE, META_PROPERTIES, METADATA_TOPIC, parse_partition_folder
from pykafka_broker.protocol.topic_partition import PartitionKey

logger = logging.getLogger("kafka.log.LogManager")


class LogDirError(Exception):
    """The broker cannot start on these directories; the text says why and what to do."""


class LogDir:
    """One log directory. `error` took it out of service; None while it is in service."""

    def __init__(self, path: str) -> None:
        self.path = absolute(path)
        self.directory_id = bytes(16)
        #: Keeps its partitions and gets no new ones (KIP-1066).
        self.is_cordoned = False
        self.error: OSError | None = None
        #: The last error of a write refused for lack of room; None while the disk takes writes. See
        #: `full_disks.py`.
        self.refusal: OSError | None = None
        #: When the next trial write is due.
        self.trial_due_ms = 0
        self.lock: Lock | None = None
        self.environment: Environment | None = None
        #: The content of the checkpoint files, so that nothing is written twice.
        self.checkpointed: dict[str, bytes] = {}
        #: The names of folders of partitions that the start has still to open.
        self.unopened: set[str] = set()
        #: Removed partitions whose entries the checkpoint files may still have.
        self.gone: set[PartitionKey] = set()
        #: How often such entries were removed: content prepared before the last removal must not be written.
        self.cleared = 0
        #: Held while the checkpoint files are written.
        self.checkpoint_lock = threading.Lock()

    @property
    def is_online(self) -> bool:
        return self.error is None


class LogDirs:
    """All log directories of a node. Methods that touch the disk are blocking."""

    def __init__(self, files: FileSystem, paths: list[str], metadata_path: str | None = None) -> None:
        self._files = files
        #: The directories in `log.dirs`.
        self.of_partitions = [LogDir(path) for path in paths]
        #: The directory of the metadata log: one of `of_partitions`, the first by default, or another.
        self.metadata = self.of_partitions[0]
        if metadata_path is not None:
            other = LogDir(metadata_path)
            self.metadata = next((d for d in self.of_partitions if d.path == other.path), other)
        self.all = list(dict.fromkeys([*self.of_partitions, self.metadata]))

    @property
    def online(self) -> list[LogDir]:
        """The directories in `log.dirs` that are in service."""
        return [log_dir for log_dir in self.of_partitions if log_dir.is_online]

    def cordon(self, paths: Iterable[str]) -> None:
        """Give these directories no new partitions; all other directories get new ones again."""
        cordoned = {absolute(path) for path in paths}
        for log_dir in self.of_partitions:
            log_dir.is_cordoned = log_dir.path in cordoned

    def holding(self, directory: str) -> LogDir:
        """The directory that a partition's folder lies in."""
        parent = directory_name(directory)
        return next(log_dir for log_dir in self.all if log_dir.path == parent)

    def lock(self) -> None:
        """Create the directories and take their lock files, or refuse with LogDirError. Blocking."""
        for log_dir in self.all:
            try:
                self._make_directory(log_dir.path)
                log_dir.lock = self._files.lock(join(log_dir.path, LOCK_FILE))
            except FileLockedError as error:
                from pykafka_broker.system.processes import described

                self.unlock()
                raise LogDirError(
                    f"Failed to acquire lock on file .lock in {log_dir.path}. "
                    "A Kafka instance in another process or thread is using this directory: "
                    f"{described(error.process_id)}."
                ) from None
            except OSError as error:
                logger.error("Log directory %s cannot be used: %s", log_dir.path, error.strerror or error)
                log_dir.error = error
        try:
            self.require()
        except LogDirError:
            self.unlock()
            raise

    def _make_directory(self, path: str) -> None:
        """Create a folder whose name, and those above it, survive a power cut."""
        missing = []
        above = path
        while above and not self._files.exists(above):
            missing.append(above)
            above = directory_name(above)
        self._files.make_directory(path)
        for created in reversed(missing):
            self._files.sync_directory(directory_name(created) or ".")

    def require(self) -> None:
        """LogDirError if the metadata directory, or every directory for partitions, is out of service."""
        if not self.metadata.is_online or not any(log_dir.is_online for log_dir in self.of_partitions):
            reasons = [f"{d.path}: {d.error.strerror or d.error}" for d in self.all if d.error]
            raise LogDirError(
                f"Cannot start on the log directories ({', '.join(reasons)}). Let this user write there, "
                "or name other folders with log.dirs and metadata.log.dir."
            )

    def unlock(self) -> None:
        """Give the lock files back."""
        for log_dir in self.all:
            if log_dir.lock is not None:
                log_dir.lock.release()
                log_dir.lock = None

    def refuse_unformatted_data(self) -> None:
        """Refuse a first start on partition folders that another cluster left. Blocking.

        Raises:
            LogDirError: there are such folders.
        """
        for log_dir in self.of_partitions:
            if log_dir.is_online and (folder := self._first_partition(log_dir)):
                raise LogDirError(
                    f"{self.metadata.path} has no {META_PROPERTIES}, but {log_dir.path} holds partitions "
                    f"({folder}). Restore the metadata directory, or run `pykafka-broker format` to "
                    "begin a new cluster, which will set these partitions aside."
                )

    def refuse_unformatted(self) -> None:
        """Refuse an unformatted directory beside formatted ones: most likely its disk is not mounted, and the
        start would create its partitions again, empty. Blocking.

        Raises:
            LogDirError: a directory is not formatted; Apache Kafka refuses it as well.
        """
        for log_dir in self.all:
            if log_dir.is_online and self._lacks_meta(log_dir):
                raise LogDirError(
                    f"No `meta.properties` found in {log_dir.path} (have you run `pykafka-broker format "
                    "--ignore-formatted` to format the directory?). If it is not new, mount its disk; "
                    "formatting does not bring its partitions back."
                )

    def _lacks_meta(self, log_dir: LogDir) -> bool:
        try:
            return self.read_meta(log_dir) is None
        except OSError as error:
            logger.debug("%s cannot be read: %s", log_dir.path, error)
            return False

    def _first_partition(self, log_dir: LogDir) -> str | None:
        for entry in self._files.entries(log_dir.path):
            folder = parse_partition_folder(entry.name) if entry.is_directory else None
            if folder is not None and folder.state == "" and folder.topic != METADATA_TOPIC:
                return entry.name
        return None

    def read_meta(self, log_dir: LogDir) -> MetaProperties | None:
        """The `meta.properties` of a directory, None if it has none. Blocking.

        Raises:
            LogDirError: the file is garbage, or newer than this software.
        """
        path = join(log_dir.path, META_PROPERTIES)
        try:
            meta = decode_meta_properties(self._files.read_file(path))
            if meta.cluster_id is None and log_dir is self.metadata:
                raise MalformedFile("meta.properties names no cluster")
            return meta
        except FileNotFoundError:
            return None
        except MalformedFile as error:
            raise LogDirError(
                f"{path} cannot be used: {error}. Start the version of the software that wrote it, "
                "or restore the file from a backup."
            ) from None

    def check_meta(self, *, node_id: int, cluster_id: str, new_directory_id: Callable[[], bytes]) -> None:
        """Compare `meta.properties` of every directory with the ids of this node, and complete it. Blocking.

        A directory without the file is new and gets one; one without a directory id (before Kafka 3.7) gets
        an id. One that cannot be read or completed goes out of service.

        Raises:
            LogDirError: a directory is not ours, or too few are left.
        """
        seen: dict[bytes, str] = {}
        for log_dir in self.all:
            if log_dir.is_online:
                try:
                    self._check_meta(log_dir, node_id, cluster_id, new_directory_id, seen)
                except OSError as error:
                    logger.error("Log directory %s cannot be used: %s", log_dir.path, error)
                    log_dir.error = error
        self.require()

    def _check_meta(
        self,
        log_dir: LogDir,
        node_id: int,
        cluster_id: str,
        new_directory_id: Callable[[], bytes],
        seen: dict[bytes, str],
    ) -> None:
        meta = self.read_meta(log_dir) or MetaProperties(None, None, None)
        if meta.cluster_id not in (None, cluster_id):
            raise LogDirError(
                f"{log_dir.path} belongs to cluster {meta.cluster_id}, this broker to {cluster_id}. "
                "Point log.dirs at this cluster's data, or remove what is there."
            )
        if meta.node_id not in (None, node_id):
            raise LogDirError(
                f"{log_dir.path} belongs to node {meta.node_id}, this is node {node_id}. "
                "Check node.id, or whether the directory was copied from another node."
            )
        complete = MetaProperties(cluster_id, node_id, meta.directory_id or new_directory_id())
        assert complete.directory_id is not None
        if complete.directory_id in seen:
            raise LogDirError(
                f"{log_dir.path} and {seen[complete.directory_id]} have the same directory.id: "
                "one of them is a copy."
            )
        seen[complete.directory_id] = log_dir.path
        log_dir.directory_id = complete.directory_id
        if complete != meta:
            path = join(log_dir.path, META_PROPERTIES)
            self._files.replace_file(path, encode_meta_properties(complete), sync=True)
