"""Groups of Kafka Streams applications (KIP-1071) as conversations need them: heartbeats in few words."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from interop.conformance.groups import a_group
from interop.conformance.normalise import learn
from interop.conformance.talk import PAUSE_S, SET_UP_TIMEOUT_S, SetUpError, Talk, Topic
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykafka_broker.protocol.messages.streams_group_heartbeat import (
    CopartitionGroup,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)

CONFIG_OF_GROUP, SET = 32, 0
#: Member epochs that say goodbye; for a while is what Kafka 4.3 refuses.
LEAVE, LEAVE_FOR_A_WHILE = -1, -2
STALE_TOPOLOGY, MISSING_SOURCE, WRONG_SIZE, MISSING_INTERNAL, SHUTDOWN, DELAYED = range(6)

#: Assign at once, so that no answer depends on the time.
AT_ONCE = {"streams.initial.rebalance.delay.ms": "0", "streams.assignment.interval.ms": "0"}


def internal(
    name: str, partitions: int = 0, replication_factor: int = 0, configs: dict[str, str] | None = None
) -> TopicInfo:
    """A changelog or repartition topic."""
    return TopicInfo(
        name=name,
        partitions=partitions,
        replication_factor=replication_factor,
        topic_configs=[KeyValue(key=key, value=value) for key, value in (configs or {}).items()],
    )


def part(number: str, *sources: Topic | str, **more: Any) -> Subtopology:
    """A subtopology."""
    values: dict[str, Any] = {
        "source_topics": [topic.name if isinstance(topic, Topic) else topic for topic in sources],
        "source_topic_regex": [],
        "state_changelog_topics": [],
        "repartition_sink_topics": [],
        "repartition_source_topics": [],
        "copartition_groups": [],
        **more,
    }
    return Subtopology(subtopology_id=number, **values)


def together(sources: Sequence[int] = (), repartitions: Sequence[int] = ()) -> CopartitionGroup:
    """Topics that need the same number of partitions, by their places."""
    return CopartitionGroup(
        source_topics=list(sources), source_topic_regex=[], repartition_source_topics=list(repartitions)
    )


def topology(*parts: Subtopology, epoch: int = 0) -> Topology:
    return Topology(epoch=epoch, subtopologies=list(parts))


def tasks(*partitions: int, number: str = "0") -> list[TaskIds]:
    """Tasks of one subtopology."""
    return [TaskIds(subtopology_id=number, partitions=list(partitions))] if partitions else []


def owning(*partitions: int, standby: Sequence[int] = ()) -> dict[str, Any]:
    """The tasks of the subtopology "0" that a member says it has."""
    return {"active_tasks": tasks(*partitions), "standby_tasks": tasks(*standby), "warmup_tasks": []}


def joining(
    group: str, member_id: str, what: Topology | Topic | None = None, **more: Any
) -> StreamsGroupHeartbeatRequest:
    """The first heartbeat of a member: its topology, or the one topic it reads, and that it has no tasks."""
    said: dict[str, Any] = {
        "rebalance_timeout_ms": 30_000,
        "topology": topology(part("0", what)) if isinstance(what, Topic) else what,
        "process_id": f"process-{member_id}",
        "endpoint_information_epoch": 0,
        **owning(),
        **more,
    }
    return StreamsGroupHeartbeatRequest(group_id=group, member_id=member_id, member_epoch=0, **said)


def beating(group: str, member_id: str, epoch: int, **said: Any) -> StreamsGroupHeartbeatRequest:
    """A later heartbeat, which says only what is new."""
    said = {"endpoint_information_epoch": 0, **said}
    return StreamsGroupHeartbeatRequest(group_id=group, member_id=member_id, member_epoch=epoch, **said)


def has_tasks(count: int) -> Callable[[StreamsGroupHeartbeatResponse], bool]:
    """Is a member told to run this many active tasks?"""
    return lambda answer: sum(len(each.partitions) for each in answer.active_tasks or ()) == count


def codes(answer: StreamsGroupHeartbeatResponse) -> list[int]:
    """The statuses in an answer."""
    return [status.status_code for status in answer.status or ()]


def a_streams_group(talk: Talk, *topics: Topic, configs: dict[str, str] | None = None) -> str:
    """A group whose tasks are assigned at once, and whose coordinator knows these topics."""
    group = a_group(talk)
    assigns_at_once(talk, group, configs)
    known(talk, *topics)
    return group


def assigns_at_once(talk: Talk, group: str, configs: dict[str, str] | None = None) -> None:
    """The answers to a group do not depend on the time. Who knows a later topic knows its settings."""
    set_configs(talk, group, {**AT_ONCE, **(configs or {})})
    known(talk, talk.topic(f"after-{group}"))


def set_configs(talk: Talk, group: str, configs: dict[str, str]) -> None:
    """The group has settings of its own from now on."""
    altered = [AlterableConfig(name=key, config_operation=SET, value=value) for key, value in configs.items()]
    resource = AlterConfigsResource(resource_type=CONFIG_OF_GROUP, resource_name=group, configs=altered)
    talk.do(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False))


def known(talk: Talk, *topics: Topic) -> None:
    """Wait until the coordinator knows these topics, and their partitions; nothing of it is compared.

    A member of another group asks for them. What its coordinator knows, all coordinators of its broker know.
    """
    probe = talk.name("probe")
    for topic in topics:
        deadline = time.monotonic() + SET_UP_TIMEOUT_S
        while MISSING_SOURCE in codes(talk.send(joining(probe, "probe", topic), version=0).receive()):
            if time.monotonic() > deadline:
                raise SetUpError(f"{topic.name} never became known")
            time.sleep(PAUSE_S)
        talk.send(beating(probe, "probe", LEAVE), version=0).receive()


def created(talk: Talk, *names: str) -> None:
    """Wait until topics are there that the broker creates by itself."""
    talk.created.extend(names)
    asked = [MetadataRequestTopic(name=name) for name in names]
    talk.do(MetadataRequest(topics=asked, allow_auto_topic_creation=False))


def joined(talk: Talk, group: str, member_id: str, what: Topology | Topic, **more: Any) -> int:
    """Join and get tasks; the epoch of the member. Nothing of it is compared."""
    answer = talk.send(joining(group, member_id, what, **more), version=0).receive()
    if answer.error_code or not answer.active_tasks:
        raise SetUpError(f"{member_id} has not got tasks: {answer}")
    learn(answer, 0, talk.names)
    epoch: int = answer.member_epoch
    return epoch
