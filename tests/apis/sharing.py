"""Short words for what brokers ask the share coordinator, and for its answers.

An answer is a mapping of partitions to the fields of their results after the partition's number; where a
refusal is expected only its code is of interest: `error_of`.
"""

from __future__ import annotations

from typing import Any

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import delete_share_group_state as deleting
from pykafka_broker.protocol.messages import find_coordinator as finding
from pykafka_broker.protocol.messages import initialize_share_group_state as initializing
from pykafka_broker.protocol.messages import read_share_group_state as reading
from pykafka_broker.protocol.messages import read_share_group_state_summary as summing_up
from pykafka_broker.protocol.messages import write_share_group_state as writing
from pykafka_broker.testing.user import User

GROUP = "workers"
SHARE = 2
#: (first offset, last offset, delivery state, delivery count)
Batch = tuple[int, int, int, int]
DONE = (0, None)


class Sharing:
    """What a broker asks about one group in one topic with two partitions."""

    def __init__(self, user: User, topic_id: bytes) -> None:
        self.user = user
        self.topic_id = topic_id

    @classmethod
    async def of(cls, user: User, topic: str = "orders") -> Sharing:
        """Create the topic, and let the share coordinator come."""
        sharing = cls(user, await user.create_topic(topic, 2))
        assert (await sharing.find(f"{GROUP}:{'A' * 22}:0")).error_code == ErrorCode.NONE
        return sharing

    async def find(self, key: str) -> finding.Coordinator:
        """The coordinator of a share partition."""
        request = finding.FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key])
        answer: finding.FindCoordinatorResponse = await self.user.send(request, 6)
        [found] = answer.coordinators
        return found

    async def initialize(
        self, *partitions: int, state_epoch: int = 1, start_offset: int = 0, group: str = GROUP
    ) -> dict[int, Any]:
        asked = [
            initializing.PartitionData(partition=each, state_epoch=state_epoch, start_offset=start_offset)
            for each in partitions or (0,)
        ]
        topic = initializing.InitializeStateData(topic_id=self.topic_id, partitions=asked)
        request = initializing.InitializeShareGroupStateRequest(group_id=group, topics=[topic])
        return self.results(await self.user.send(request, 0))

    async def read(self, *partitions: int, leader_epoch: int = -1, group: str = GROUP) -> dict[int, Any]:
        asked = [
            reading.PartitionData(partition=each, leader_epoch=leader_epoch) for each in partitions or (0,)
        ]
        topic = reading.ReadStateData(topic_id=self.topic_id, partitions=asked)
        request = reading.ReadShareGroupStateRequest(group_id=group, topics=[topic])
        return self.results(await self.user.send(request, 0))

    async def write(
        self,
        *batches: Batch,
        partition: int = 0,
        version: int = 1,
        state_epoch: int = 1,
        leader_epoch: int = -1,
        start_offset: int = -1,
        complete: int = -1,
        group: str = GROUP,
    ) -> dict[int, Any]:
        asked = writing.PartitionData(
            partition=partition,
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=complete,
            state_batches=[
                writing.StateBatch(
                    first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
                )
                for first, last, state, count in batches
            ],
        )
        topic = writing.WriteStateData(topic_id=self.topic_id, partitions=[asked])
        request = writing.WriteShareGroupStateRequest(group_id=group, topics=[topic])
        return self.results(await self.user.send(request, version))

    async def delete(self, *partitions: int, group: str = GROUP) -> dict[int, Any]:
        asked = [deleting.PartitionData(partition=each) for each in partitions or (0,)]
        topic = deleting.DeleteStateData(topic_id=self.topic_id, partitions=asked)
        request = deleting.DeleteShareGroupStateRequest(group_id=group, topics=[topic])
        return self.results(await self.user.send(request, 0))

    async def summary(self, *partitions: int, version: int = 1, group: str = GROUP) -> dict[int, Any]:
        asked = [summing_up.PartitionData(partition=each, leader_epoch=0) for each in partitions or (0,)]
        topic = summing_up.ReadStateSummaryData(topic_id=self.topic_id, partitions=asked)
        request = summing_up.ReadShareGroupStateSummaryRequest(group_id=group, topics=[topic])
        return self.results(await self.user.send(request, version))

    def results(self, response: Any) -> dict[int, Any]:
        """By partition, what follows it in the answer; batches are tuples."""
        if not response.results:
            return {}
        [topic] = response.results
        assert topic.topic_id == self.topic_id
        return {each.partition: tuple(_plain(each)) for each in topic.partitions}


def _plain(result: Any) -> list[Any]:
    fields = [getattr(result, name) for name in result.__slots__ if name != "partition"]
    return [
        [(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in field]
        if isinstance(field, list)
        else field
        for field in fields
    ]


def error_of(answer: dict[int, Any], partition: int = 0) -> ErrorCode:
    """The error of one partition."""
    return ErrorCode(answer[partition][0])
