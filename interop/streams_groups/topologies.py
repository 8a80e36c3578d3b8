"""What a topology needs."""

from __future__ import annotations

import random

from interop.streams_groups import Json
from pykafka_broker.coordinator.groups.core.streams.topology.configured import configured
from pykafka_broker.coordinator.groups.core.streams.topology.declared import (
    CopartitionGroup,
    InternalTopic,
    Subtopology,
    Topology,
)
from pykafka_broker.coordinator.groups.core.topics import TopicInfo, Topics
from pykafka_broker.protocol.errors import ErrorCode, KafkaError


def random_topology(rng: random.Random) -> Json:
    """A topology of any shape, well-made or not, over topics of which some exist."""
    names = [f"source-{number}" for number in range(4)]
    equal = rng.random() < 0.5
    topics = {name: 4 if equal else rng.randint(1, 6) for name in names if rng.random() < 0.97}
    repartition = [f"app-repartition-{number}" for number in range(rng.randint(0, 4))]
    fixed = {name: rng.choice([0, 0, 0, 4, 3]) for name in repartition}
    parts: list[Json] = []
    ids = [rng.choice([str(number), f"part-{number}"]) for number in range(rng.randint(1, 5))]
    for number, name in enumerate(ids):
        sources = rng.sample(names, rng.choice([0, 1, 1, 2]))
        reads = rng.sample(repartition, rng.randint(0, len(repartition)))
        if not sources and not reads and rng.random() < 0.95:
            sources = [names[0]]
        groups = []
        if rng.random() < 0.5:
            groups.append(
                {
                    "sourceTopics": [i for i in range(len(sources)) if rng.random() < 0.7],
                    "sourceTopicRegex": [],
                    "repartitionSourceTopics": [i for i in range(len(reads)) if rng.random() < 0.7],
                }
            )
        stores = range(rng.choice([0, 0, 1, 2]))
        changelogs = [
            topic_json(f"app-store-{number}-{store}-changelog", 0, rng.choice([0, 3])) for store in stores
        ]
        parts.append(
            {
                "subtopologyId": name,
                "sourceTopics": sources,
                "sourceTopicRegex": [],
                "stateChangelogTopics": changelogs,
                "repartitionSinkTopics": rng.sample(repartition, rng.randint(0, len(repartition))),
                "repartitionSourceTopics": [topic_json(topic, fixed[topic], 0) for topic in reads],
                "copartitionGroups": groups,
            }
        )
    internal = repartition + [topic["name"] for part in parts for topic in part["stateChangelogTopics"]]
    for name in internal:
        if rng.random() < 0.15:
            topics[name] = rng.choice([4, 4, 2])
    return {"about": "topology", "topology": {"epoch": 0, "subtopologies": parts}, "topics": topics}


def topic_json(name: str, partitions: int, replication_factor: int) -> Json:
    policy = {"key": "cleanup.policy", "value": "compact" if partitions == 0 else "delete"}
    return {
        "name": name,
        "partitions": partitions,
        "replicationFactor": replication_factor,
        "topicConfigs": [policy, {"key": "segment.bytes", "value": "52428800"}],
    }


def configured_topology(question: Json) -> Json:
    """What we make of a topology."""
    topics = Topics({name: TopicInfo(name, bytes(16), count) for name, count in question["topics"].items()})
    try:
        result = configured(topology_of(question["topology"]), topics, 0)
    except KafkaError as error:
        unknown = error.code is ErrorCode.UNKNOWN_SERVER_ERROR
        return {"error": [-1] if unknown else [error.code, error.message]}
    parts = result.subtopologies
    return {
        "ready": result.is_ready,
        "tasks": None if parts is None else {name: part.task_count for name, part in parts.items()},
        "missing": [
            [name, topic.partitions, topic.replication_factor, dict(sorted(topic.configs))]
            for name, topic in result.internal_topics.items()
        ],
        "problem": None if result.problem is None else list(result.problem),
    }


def topology_of(topology: Json) -> Topology:
    return Topology(
        topology["epoch"],
        tuple(
            Subtopology(
                part["subtopologyId"],
                tuple(part["sourceTopics"]),
                tuple(part["sourceTopicRegex"]),
                tuple(map(internal_topic, part["stateChangelogTopics"])),
                tuple(part["repartitionSinkTopics"]),
                tuple(map(internal_topic, part["repartitionSourceTopics"])),
                tuple(
                    CopartitionGroup(
                        tuple(group["sourceTopics"]),
                        tuple(group["sourceTopicRegex"]),
                        tuple(group["repartitionSourceTopics"]),
                    )
                    for group in part["copartitionGroups"]
                ),
            )
            for part in topology["subtopologies"]
        ),
    )


def internal_topic(topic: Json) -> InternalTopic:
    configs = tuple((config["key"], config["value"]) for config in topic["topicConfigs"])
    return InternalTopic(topic["name"], topic["partitions"], topic["replicationFactor"], configs)
