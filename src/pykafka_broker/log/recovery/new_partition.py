"""A new partition's folder: its files, and the log in it."""

from __future__ import annotations

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.checkpoints import EpochEntry, encode_epochs, encode_partition_metadata
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.disk.files import directory_name, join
from pykafka_broker.log.disk.names import (
    DENSE_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    offset_file,
)
from pykafka_broker.log.partition.leader_epochs import LeaderEpochs
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.producers import ProducerStates
from pykafka_broker.log.partition.state import LogIdentity, OpenedLog
from pykafka_broker.log.segment.segment import Segment


def create_log(
    environment: Environment,
    identity: LogIdentity,
    config: LogConfig,
    *,
    start_offset: int = 0,
    in_first_epoch: bool = False,
    stays_open: bool = False,
) -> PartitionLog:
    """A new partition in a new folder; FileExistsError if a log is there already.

    With `in_first_epoch`, the first record can only have leader epoch 0, so that epoch is written now. A log
    that `stays_open` keeps its descriptor until it is found idle.
    """
    files, directory = environment.files, identity.directory
    files.make_directory(directory)
    metadata = join(directory, PARTITION_METADATA)
    files.write_file(metadata, encode_partition_metadata(identity.topic_id), sync=False)
    path = join(directory, offset_file(start_offset, ""))
    segment = Segment.create(
        files,
        path,
        start_offset,
        config.index_interval_bytes,
        reserved_bytes=config.segment_bytes if config.preallocate else 0,
    )
    if not stays_open:
        segment.release_file()
    if config.is_compacted:
        files.write_file(join(directory, offset_file(start_offset, DENSE_SUFFIX)), b"", sync=False)
    epochs = LeaderEpochs((EpochEntry(0, start_offset),) if in_first_epoch else ())
    epochs_file = join(directory, LEADER_EPOCH_CHECKPOINT)
    files.write_file(epochs_file, encode_epochs(epochs.entries), sync=False)
    opened = OpenedLog(
        segments=(segment,),
        log_start_offset=start_offset,
        log_end_offset=start_offset,
        high_watermark=start_offset,
        recovery_point=start_offset,
        epochs=epochs,
        producers=ProducerStates(start_offset),
        dense_from=start_offset if config.is_compacted else None,
        # Not even the folder's own name is durable.
        unsynced=frozenset({metadata, epochs_file, directory, directory_name(directory)}),
    )
    return PartitionLog(environment, identity, config, opened)
