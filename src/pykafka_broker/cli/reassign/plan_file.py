"""The JSON of a reassignment, as kafka-reassign-partitions reads and writes it. Pure.

{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2],"log_dirs":["any","any"]}]}
"""

from __future__ import annotations

import json
from typing import Any

from pykafka_broker.cli.reassign.planning import Assignment
from pykafka_broker.protocol.topic_partition import TopicPartition

VERSION = 1
ANY_DIRECTORY = "any"


class PlanFileError(ValueError):
    """The text is no plan; the message says what is wrong with it."""


def written(assignment: Assignment) -> str:
    """The JSON of these replicas, in the order of the partitions."""
    partitions = [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": list(assignment[partition]),
            "log_dirs": [ANY_DIRECTORY] * len(assignment[partition]),
        }
        for partition in sorted(assignment)
    ]
    return json.dumps({"version": VERSION, "partitions": partitions}, separators=(",", ":"))


def parsed(text: str) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas that the JSON of a plan wants.

    Raises:
        PlanFileError: it is no JSON, or not of this form; a partition is named twice, has no replicas, or has
            one twice; or it names directories, which `reassign` leaves to the brokers.
    """
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PlanFileError(f"it is no JSON: {error}") from None
    if not isinstance(tree, dict) or not isinstance(tree.get("partitions"), list):
        raise PlanFileError('it has no list "partitions"')
    if tree.get("version", VERSION) != VERSION:
        raise PlanFileError(f"its version is {tree['version']}, and only {VERSION} is known")
    found: dict[TopicPartition, tuple[int, ...]] = {}
    for entry in tree["partitions"]:
        partition, replicas = _entry(entry)
        if partition in found:
            raise PlanFileError(f"{partition.topic}-{partition.partition} comes twice")
        found[partition] = replicas
    if not found:
        raise PlanFileError("it has no partitions")
    return found


def _entry(entry: Any) -> tuple[TopicPartition, tuple[int, ...]]:
    match entry:
        case {"topic": str(topic), "partition": int(index), "replicas": [*replicas]} if all(
            type(broker) is int and broker >= 0 for broker in replicas
        ):
            partition = TopicPartition(topic, index)
        case _:
            raise PlanFileError(f"this is no partition with its replicas: {json.dumps(entry)}")
    name = f"{topic}-{index}"
    if not replicas:
        raise PlanFileError(f"{name} has no replicas")
    if len(set(replicas)) < len(replicas):
        raise PlanFileError(f"{name} has a replica twice: {','.join(map(str, replicas))}")
    if any(directory != ANY_DIRECTORY for directory in entry.get("log_dirs") or ()):
        raise PlanFileError(
            f"{name} names log_dirs, and brokers choose theirs; kafka-reassign-partitions knows how"
        )
    return partition, tuple(replicas)
