"""Requests to the share coordinator for conversations, as group coordinators and leaders of partitions send
them, each about one topic of one group.
"""

from __future__ import annotations

from itertools import count

from interop.conformance.talk import Talk, Topic, alike
from pykafka_broker.coordinator.share.keys import coordinator_key
from pykafka_broker.protocol.messages import delete_share_group_state as deleting
from pykafka_broker.protocol.messages import initialize_share_group_state as initializing
from pykafka_broker.protocol.messages import read_share_group_state as reading
from pykafka_broker.protocol.messages import read_share_group_state_summary as summing_up
from pykafka_broker.protocol.messages import write_share_group_state as writing
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.topic_partition import SharePartitionKey

SHARE = 2
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
#: Of a topic that is not there, with one node.
NO_TOPIC_ID = b"\x07" * 16
#: Conversations ask about so many partitions of a topic, whether they are there or not, and about one that
#: cannot be there.
PARTITIONS_ASKED = 3
NO_PARTITION = -1
#: (first offset, last offset, delivery state, delivery count)
Batch = tuple[int, int, int, int]


def share_group_at_home(talk: Talk, name: str, *asked: tuple[bytes, int]) -> str:
    """The name of a share group: `name`, or in a cluster one like it, so that the home of the conversation
    coordinates the group and these share partitions of it, each the id of a topic and a partition. As ids of
    topics are random, the name differs from side to side.
    """
    home = talk.home
    if home is None:
        return name

    def is_at_home(group: str) -> bool:
        keys = (coordinator_key(SharePartitionKey(group, *partition)) for partition in asked)
        return home.coordinates(group) and all(map(home.coordinates_share, keys))

    found = next(filter(is_at_home, alike(name)))
    talk.names.stand_for(found, name)
    return found


class ShareGroup:
    """A group in one topic, whose share coordinator has been found."""

    def __init__(
        self, talk: Talk, topic: Topic | None = None, partitions: int = 1, *, label: str = "group"
    ) -> None:
        self.topic = talk.topic(partitions=partitions) if topic is None else topic
        asked = ((self.topic.id, partition) for partition in (NO_PARTITION, *range(PARTITIONS_ASKED)))
        self.id = share_group_at_home(talk, talk.name(label), *asked)
        self._talk = talk
        for partition in range(partitions):
            talk.do(FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[self.key(partition)]), version=6)
            # The partition with the state may still be being loaded.
            talk.do(self.deleting(partition), version=0)

    def key(self, partition: int = 0) -> str:
        """What FindCoordinator asks for."""
        return coordinator_key(SharePartitionKey(self.id, self.topic.id, partition))

    @property
    def unknown_topic_id(self) -> bytes:
        """The id of a topic that is not there."""
        if self._talk.home is None:
            return NO_TOPIC_ID
        ids = (number.to_bytes(len(NO_TOPIC_ID)) for number in count(1))
        at_home = self._talk.home.coordinates_share
        return next(each for each in ids if at_home(coordinator_key(SharePartitionKey(self.id, each, 0))))

    def begun(self, *partitions: int, state_epoch: int = 1, start_offset: int = 0) -> ShareGroup:
        """Initialise share partitions, as set-up."""
        request = self.initializing(*partitions or (0,), state_epoch=state_epoch, start_offset=start_offset)
        self._talk.do(request, version=0)
        return self

    def initializing(
        self, *partitions: int, state_epoch: int = 1, start_offset: int = 0
    ) -> initializing.InitializeShareGroupStateRequest:
        asked = [
            initializing.PartitionData(partition=each, state_epoch=state_epoch, start_offset=start_offset)
            for each in partitions or (0,)
        ]
        topic = initializing.InitializeStateData(topic_id=self.topic.id, partitions=asked)
        return initializing.InitializeShareGroupStateRequest(group_id=self.id, topics=[topic])

    def reading(self, *partitions: int, leader_epoch: int = -1) -> reading.ReadShareGroupStateRequest:
        asked = [
            reading.PartitionData(partition=each, leader_epoch=leader_epoch) for each in partitions or (0,)
        ]
        topic = reading.ReadStateData(topic_id=self.topic.id, partitions=asked)
        return reading.ReadShareGroupStateRequest(group_id=self.id, topics=[topic])

    def writing(
        self,
        *batches: Batch,
        partition: int = 0,
        state_epoch: int = 1,
        leader_epoch: int = 0,
        start_offset: int = -1,
        complete: int = 0,
    ) -> writing.WriteShareGroupStateRequest:
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
        topic = writing.WriteStateData(topic_id=self.topic.id, partitions=[asked])
        return writing.WriteShareGroupStateRequest(group_id=self.id, topics=[topic])

    def deleting(self, *partitions: int) -> deleting.DeleteShareGroupStateRequest:
        asked = [deleting.PartitionData(partition=each) for each in partitions or (0,)]
        topic = deleting.DeleteStateData(topic_id=self.topic.id, partitions=asked)
        return deleting.DeleteShareGroupStateRequest(group_id=self.id, topics=[topic])

    def summing_up(self, *partitions: int) -> summing_up.ReadShareGroupStateSummaryRequest:
        asked = [summing_up.PartitionData(partition=each, leader_epoch=0) for each in partitions or (0,)]
        topic = summing_up.ReadStateSummaryData(topic_id=self.topic.id, partitions=asked)
        return summing_up.ReadShareGroupStateSummaryRequest(group_id=self.id, topics=[topic])
