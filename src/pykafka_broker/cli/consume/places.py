"""Where reading begins and ends: words like `beginning` and `@2026-01-01`, and the offsets of a group."""

from __future__ import annotations

import time

import click

from pykafka_broker.cli.consume.reader import READ_COMMITTED
from pykafka_broker.cli.offsets import parse_number, parse_time_ms
from pykafka_broker.cli.suggestions import known_topic
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.metadata import leaders_of, partition_error
from pykafka_broker.client.offsets import EARLIEST, LATEST, commit_offsets, committed_offsets, list_offsets
from pykafka_broker.protocol.errors import ErrorCode

COMMIT_INTERVAL_S = 5.0


class Places:
    """Turns words like `beginning` and `@2026-01-01` into offsets."""

    def __init__(
        self, client: Client, topic: str, partitions: tuple[int, ...], *, read_committed: bool
    ) -> None:
        self.client = client
        self.topic = topic
        existing = leaders_of(known_topic(client, topic))
        self.partitions = list(partitions or existing)
        self.isolation_level = READ_COMMITTED if read_committed else 0
        for partition in self.partitions:
            if partition not in existing:
                raise partition_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topic, partition)

    def start(self, where: str | None, group: str | None) -> dict[int, int]:
        """The offset at which to begin in each partition."""
        if where is None and group is not None:
            committed = self.client.at_coordinator(
                group, lambda node_id: committed_offsets(self.client, node_id, group)
            )
            return {
                partition: committed.get((self.topic, partition), first)
                for partition, first in self._at(EARLIEST).items()
            }
        return self._resolve(where or "beginning", "--from")

    def end(self, where: str) -> dict[int, int]:
        """The offset before which to stop in each partition."""
        return self._resolve(where, "--until")

    def _resolve(self, where: str, option: str) -> dict[int, int]:
        if where == "beginning":
            return self._at(EARLIEST)
        if where == "end":
            return self._at(LATEST)
        if where.isdecimal():
            return dict.fromkeys(self.partitions, parse_number(where))
        if where.startswith("-") and where[1:].isdecimal():
            back = parse_number(where[1:])
            first, end = self._at(EARLIEST), self._at(LATEST)
            return {p: max(first[p], end[p] - back) for p in self.partitions}
        if where.startswith("@"):
            end = self._at(LATEST)
            found = self._at(parse_time_ms(where[1:]))
            # -1: no record is at or after that time.
            return {p: end[p] if found[p] < 0 else found[p] for p in self.partitions}
        raise click.BadParameter(
            f"{where!r} is none of beginning, end, an offset, -N and @TIME", param_hint=option
        )

    def _at(self, timestamp: int) -> dict[int, int]:
        times = {(self.topic, partition): timestamp for partition in self.partitions}
        # The isolation level decides the end of a partition; a time is looked up among all records.
        level = self.isolation_level if timestamp == LATEST else 0
        found = list_offsets(self.client, times, isolation_level=level)
        return {partition: found[self.topic, partition] for partition in self.partitions}


class Commits:
    """Commits a group's offsets now and then, if there is a group."""

    def __init__(self, client: Client, topic: str, group: str | None, positions: dict[int, int]) -> None:
        self.client = client
        self.topic = topic
        self.group = group
        self.positions = positions
        #: A commit that is refused ends the command.
        self.refused: tuple[str, ...] = ()
        self._committed: dict[int, int] = {}
        self._next_s = time.monotonic() + COMMIT_INTERVAL_S

    def maybe_commit(self) -> None:
        if self.group is not None and time.monotonic() >= self._next_s:
            self.commit()
            self._next_s = time.monotonic() + COMMIT_INTERVAL_S

    def commit(self) -> None:
        """Commit every position that has moved.

        Raises:
            KafkaError: the group has members, and this command is not one of them.
        """
        group = self.group
        if group is None:
            return
        moved = {p: offset for p, offset in self.positions.items() if self._committed.get(p) != offset}
        if moved:
            offsets = {(self.topic, partition): offset for partition, offset in moved.items()}
            self.client.at_coordinator(
                group, lambda node_id: commit_offsets(self.client, node_id, group, offsets)
            )
            self._committed.update(moved)
