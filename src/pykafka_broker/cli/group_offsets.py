"""What commands do to groups of any kind: choose partitions and new offsets, and delete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from pykafka_broker.cli.offsets import parse_duration_ms, parse_number, parse_time_ms
from pykafka_broker.cli.output import Output
from pykafka_broker.cli.suggestions import known_topic
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.metadata import leaders_of, partition_error
from pykafka_broker.client.offsets import EARLIEST, LATEST, list_offsets
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.topic_partition import PartitionKey


def chosen_partitions(client: Client, topics: Iterable[str]) -> list[PartitionKey]:
    """The partitions that `topic` and `topic:0,1` entries name.

    Raises:
        click.BadParameter: the text after a topic is not a list of partition numbers.
        KafkaError: there is no such topic or partition.
    """
    chosen = []
    for entry in topics:
        topic, colon, numbers = entry.partition(":")
        named = [number.strip() for number in numbers.split(",")] if colon else []
        if wrong := [number for number in named if not number.isdecimal()]:
            raise click.BadParameter(f"{wrong[0]!r} is no partition of {topic!r}", param_hint="--topic")
        existing = leaders_of(known_topic(client, topic))
        for partition in map(parse_number, named) if colon else existing:
            if partition not in existing:
                raise partition_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topic, partition)
            chosen.append((topic, partition))
    return chosen


def new_offsets(
    client: Client,
    partitions: Sequence[PartitionKey],
    committed: Mapping[PartitionKey, int],
    how: str,
    value: Any,
) -> dict[PartitionKey, int]:
    """The new offset of each partition: the nearest to the wanted one that is inside of the log."""
    return {
        p: new for p, (_, new) in wanted_and_new_offsets(client, partitions, committed, how, value).items()
    }


def wanted_and_new_offsets(
    client: Client,
    partitions: Sequence[PartitionKey],
    committed: Mapping[PartitionKey, int],
    how: str,
    value: Any,
) -> dict[PartitionKey, tuple[int, int]]:
    """The wanted offset of each partition, which may be outside of its log, and the new one."""
    first = list_offsets(client, dict.fromkeys(partitions, EARLIEST))
    end = list_offsets(client, dict.fromkeys(partitions, LATEST))
    wanted = {**first, **_wanted(client, partitions, committed, end, how, value)}
    return {p: (wanted[p], min(max(wanted[p], first[p]), end[p])) for p in partitions}


def _wanted(
    client: Client,
    partitions: Sequence[PartitionKey],
    committed: Mapping[PartitionKey, int],
    end: Mapping[PartitionKey, int],
    how: str,
    value: Any,
) -> Mapping[PartitionKey, int]:
    """The wanted offset of each partition, even outside the log; a partition without one goes to its
    start.
    """
    if how in ("to_datetime", "by_duration"):
        import time

        since = (
            parse_time_ms(value)
            if how == "to_datetime"
            else max(int(time.time() * 1000) - parse_duration_ms(value), 0)
        )
        at_time = list_offsets(client, dict.fromkeys(partitions, since))
        # -1: no record is at or after that time.
        return {p: end[p] if at_time[p] < 0 else at_time[p] for p in partitions}
    if how == "shift_by":
        if missing := [p for p in partitions if p not in committed]:
            raise click.ClickException(
                f"Cannot shift {missing[0][0]}-{missing[0][1]}: it has no committed offset"
            )
        return {p: committed[p] + value for p in partitions}
    if how == "to_offset":
        return dict.fromkeys(partitions, int(value))
    if how == "to_current":
        return {p: committed.get(p, end[p]) for p in partitions}
    return {} if how == "to_earliest" else end


def delete_group(client: Client, name: str) -> int:
    """Delete a group of any kind; the error code of the answer, 0 if it is deleted."""
    from pykafka_broker.protocol.messages.delete_groups import DeleteGroupsRequest

    request = DeleteGroupsRequest(groups_names=[name])
    code: int = client.at_coordinator(
        name, lambda node_id: client.send(request, node_id).results[0].error_code
    )
    return code


def show_deleted(
    kind: str, deleted: Sequence[Any], failures: Sequence[tuple[str, str]], output: Output
) -> None:
    """Show the groups that are deleted; show the reasons for the others, and fail if there are any."""
    shown = ", ".join(f"'{group.group}'" for group in deleted)
    output.show_all(deleted, [f"Deletion of requested {kind} ({shown}) was successful."] if deleted else [])
    if failures:
        lines = (f"* Group '{name}' could not be deleted due to: {why}" for name, why in failures)
        raise click.ClickException("\n".join([f"Deletion of some {kind} failed:", *lines]))
