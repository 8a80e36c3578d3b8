"""AlterReplicaLogDirs: move replicas between log directories. The brokers compared have one each: what can be
asked of it, and what is refused in which order.
"""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from pykafka_broker.protocol.messages.describe_log_dirs import DescribeLogDirsRequest

NOWHERE = "/no/such/directory"
#: Results are kept in hash maps.
BY_NAME = {"results": "topic_name", "partitions": "partition_index"}


def to(path: str, *topics: tuple[str, list[int]]) -> AlterReplicaLogDir:
    moved = [AlterReplicaLogDirTopic(name=name, partitions=indexes) for name, indexes in topics]
    return AlterReplicaLogDir(path=path, topics=moved)


def here(talk: Talk) -> str:
    """The log directory of the broker."""
    path: str = talk.do(DescribeLogDirsRequest(topics=[]), version=4).results[0].log_dir
    return path


def ask(talk: Talk, *dirs: AlterReplicaLogDir, errors: tuple[E, ...] = ()) -> None:
    talk.ask(AlterReplicaLogDirsRequest(dirs=list(dirs)), *errors, in_any_order=BY_NAME)


@conversation
def to_where_it_is_already(talk: Talk) -> None:
    ask(talk, to(here(talk), (talk.topic(partitions=2).name, [1, 0])))


@conversation
def to_a_directory_that_is_none(talk: Talk) -> None:
    ask(talk, to(NOWHERE, (talk.topic().name, [0])), errors=(E.LOG_DIR_NOT_FOUND,))


@conversation
def the_directory_by_another_spelling(talk: Talk) -> None:
    ask(talk, to(here(talk) + "/", (talk.topic().name, [0])), errors=(E.LOG_DIR_NOT_FOUND,))


@conversation
def an_unknown_topic(talk: Talk) -> None:
    ask(talk, to(here(talk), (talk.name("missing"), [0])), errors=(E.UNKNOWN_TOPIC_OR_PARTITION,))


@conversation
def an_unknown_partition_beside_a_known_one(talk: Talk) -> None:
    topics = (talk.topic().name, [0, 7])
    ask(talk, to(here(talk), topics), errors=(E.UNKNOWN_TOPIC_OR_PARTITION,))


@conversation
def the_directory_is_looked_at_before_the_topic(talk: Talk) -> None:
    ask(talk, to(NOWHERE, (talk.name("missing"), [0])), errors=(E.LOG_DIR_NOT_FOUND,))


@conversation
def a_name_too_long_for_a_folder_is_seen_first(talk: Talk) -> None:
    ask(talk, to(NOWHERE, ("t" * 230, [0])), errors=(E.INVALID_TOPIC_EXCEPTION,))


@conversation
def the_longest_name_that_is_not_too_long(talk: Talk) -> None:
    ask(talk, to(NOWHERE, ("t" * 213, [0])), errors=(E.LOG_DIR_NOT_FOUND,))
    ask(talk, to(NOWHERE, ("t" * 214, [0])), errors=(E.INVALID_TOPIC_EXCEPTION,))


@conversation
def of_a_partition_named_twice_the_last_directory_counts(talk: Talk) -> None:
    name = talk.topic().name
    ask(talk, to(NOWHERE, (name, [0])), to(here(talk), (name, [0])))
    ask(talk, to(here(talk), (name, [0])), to(NOWHERE, (name, [0])), errors=(E.LOG_DIR_NOT_FOUND,))


@conversation
def several_topics(talk: Talk) -> None:
    names = [talk.topic(label).name for label in ("a", "b")]
    ask(talk, to(here(talk), *((name, [0]) for name in names)))


@conversation
def the_metadata_log(talk: Talk) -> None:
    ask(talk, to(here(talk), ("__cluster_metadata", [0])), errors=(E.UNKNOWN_TOPIC_OR_PARTITION,))


@conversation
def no_directories(talk: Talk) -> None:
    ask(talk)


@conversation
def a_directory_without_topics(talk: Talk) -> None:
    ask(talk, to(NOWHERE))
    ask(talk, to(NOWHERE, (talk.topic().name, [])))
