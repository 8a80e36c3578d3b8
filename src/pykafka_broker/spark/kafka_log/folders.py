"""The choice of the partition folders to read."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pykafka_broker.arrow.partition_folder import PartitionFolder, folder_at, folders_in
from pykafka_broker.cluster.topic_names import INTERNAL_TOPICS
from pykafka_broker.log.disk.files import FileSystem, absolute
from pykafka_broker.log.disk.names import METADATA_TOPIC
from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.kafka_log.options import LogOptions, Topics

Folders = dict[TopicPartition, PartitionFolder]

#: Topics that no pattern stands for.
NEVER_MATCHED = INTERNAL_TOPICS | {METADATA_TOPIC}


def find_folders(files: FileSystem, options: LogOptions) -> Folders:
    """The existing folders among those that are asked for.

    Raises:
        SparkError: a path is no folder with partitions, or a partition is in two of them.
    """
    found: Folders = {}
    for path in options.paths:
        for folder in _folders_at(files, absolute(path), options.topics):
            name = TopicPartition(folder.name.topic, folder.name.partition)
            if not _is_chosen(name, options.topics):
                continue
            if name in found:
                raise SparkError(
                    f"{name} is in {found[name].path} and in {folder.path}: name the one to read."
                )
            found[name] = folder
    return dict(sorted(found.items()))


def insist_on_chosen(options: LogOptions, found: Mapping[TopicPartition, PartitionFolder]) -> None:
    """
    Raises:
        SparkError: a topic or a partition that is asked for is not there.
    """
    where = " or ".join(options.paths)
    topics = {name.topic for name in found}
    names, pattern, partitions = options.topics
    for topic in names or ():
        if topic not in topics:
            raise SparkError(f"There is no folder of topic '{topic}' in {where}.")
    for name in partitions or ():
        if name not in found:
            raise SparkError(f"There is no folder {name} in {where}.")
    if pattern is not None and not found:
        raise SparkError(f"No topic in {where} matches {pattern}.")


def _folders_at(files: FileSystem, path: str, topics: Topics) -> list[PartitionFolder]:
    try:
        inside = folders_in(files, path)
        if inside:
            if topics == Topics():
                raise SparkError(
                    f"{path} is a log directory: name the topics with subscribe, subscribePattern or assign."
                )
            return inside
        return [folder_at(files, path)]
    except ValueError:
        raise SparkError(
            f"{path} is neither a log directory with folders of partitions nor one of those, whose name is "
            "TOPIC-PARTITION."
        ) from None


def _is_chosen(name: TopicPartition, topics: Topics) -> bool:
    names, pattern, partitions = topics
    if names is not None:
        return name.topic in names
    if pattern is not None:
        return name.topic not in NEVER_MATCHED and re.fullmatch(pattern, name.topic) is not None
    return partitions is None or name in partitions
