"""The share partitions led here: one for each group and partition that a member fetches from.

The first fetch makes one. It is dropped when this node resigns as leader (or the topic is deleted), when
the group's last session on this node ends, or when the share coordinator has fenced it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from functools import partial
from itertools import count
from typing import TypeVar

from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.topic_partition import SharePartitionKey
from pykafka_broker.replication.leading_replica import LeadingReplica
from pykafka_broker.replication.partition import Partition
from pykafka_broker.share.settings import SharePartitionSettings, ShareSettings
from pykafka_broker.share.share_partition import LedSharePartition, ShareNode

Place = TypeVar("Place", bound=Hashable)


class SharePartitions:
    """All share partitions of this node. Event loop only."""

    def __init__(self, node: ShareNode, settings: ShareSettings) -> None:
        #: May be replaced at any time; applies from the next event on.
        self.settings = settings
        self._node = node
        self._open: dict[SharePartitionKey, LedSharePartition] = {}
        #: The entries of `_open` by topic id and partition, and by group.
        self._of_partition: dict[tuple[bytes, int], dict[SharePartitionKey, LedSharePartition]] = {}
        self._of_group: dict[str, dict[SharePartitionKey, LedSharePartition]] = {}
        #: Dropped share partitions whose writes are still in flight.
        self._writing: dict[SharePartitionKey, LedSharePartition] = {}
        self._fetch_ids = count(1)
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._open)

    def settings_of(self, group_id: str) -> SharePartitionSettings:
        """The settings of a group."""
        return self.settings.of(group_id)

    def new_fetch_id(self) -> int:
        """A fetch id that no other fetch has."""
        return next(self._fetch_ids)

    def find(self, group_id: str, topic_id: bytes, partition: int) -> LedSharePartition | None:
        """A share partition that some member has fetched from."""
        return self._open.get(SharePartitionKey(group_id, topic_id, partition))

    def open(self, group_id: str, partition: LeadingReplica) -> LedSharePartition:
        """The share partition of a group in a partition that this node leads; the first call makes it.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, the node stops.
        """
        if self._is_closed:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        key = SharePartitionKey(group_id, partition.topic_id, partition.log.partition)
        found = self._open.get(key)
        if found is None:
            predecessor = self._writing.get(key)
            found = LedSharePartition(
                key,
                partition,
                self._node,
                settings=partial(self.settings_of, group_id),
                predecessor=None if predecessor is None else predecessor.writing,
                dropped=self.drop,
            )
            self._open[key] = found
            self._of_partition.setdefault(key[1:], {})[key] = found
            self._of_group.setdefault(group_id, {})[key] = found
        return found

    # ---- its end ----

    def drop(self, share_partition: LedSharePartition) -> None:
        """Forget a share partition; the next fetch begins with what the share coordinator has."""
        key = share_partition.key
        if self._open.get(key) is not share_partition:
            return
        del self._open[key]
        _take_out(self._of_partition, key[1:], key)
        _take_out(self._of_group, key.group_id, key)
        share_partition.fence()
        if (writing := share_partition.writing) is not None:
            self._writing[key] = share_partition
            writing.add_done_callback(partial(self._written, share_partition))

    def drop_group(self, group_id: str) -> None:
        """Forget the share partitions of a group that has no session here any more."""
        self._drop_all(self._of_group.get(group_id, {}).values())

    def drop_everything(self) -> None:
        """Forget all share partitions: share groups are switched off."""
        self._drop_all(self._open.values())

    def _drop_all(self, share_partitions: Iterable[LedSharePartition]) -> None:
        for share_partition in tuple(share_partitions):
            self.drop(share_partition)

    def _written(self, share_partition: LedSharePartition, _: object) -> None:
        if self._writing.get(share_partition.key) is share_partition:
            del self._writing[share_partition.key]

    async def close(self) -> None:
        """The node stops: answer all waiting calls; no write is in flight when this returns."""
        self._is_closed = True
        tasks = [task for each in (*self._open.values(), *self._writing.values()) for task in each.close()]
        self._open.clear()
        self._of_partition.clear()
        self._of_group.clear()
        if tasks:
            await asyncio.wait(tasks)

    # ---- roles of this node ----

    def lead(self, partition: LeadingReplica) -> None:
        """Nothing to do: the first fetch makes a share partition."""

    def follow(self, partition: Partition, leader: int) -> None:
        """Nothing to do: members fetch from the leader."""

    def resign(self, partition: Partition) -> None:
        """Members have to ask the next leader."""
        place = partition.topic_id, partition.partition
        self._drop_all(self._of_partition.get(place, {}).values())


def _take_out(
    table: dict[Place, dict[SharePartitionKey, LedSharePartition]], place: Place, key: SharePartitionKey
) -> None:
    of_place = table[place]
    del of_place[key]
    if not of_place:
        del table[place]
