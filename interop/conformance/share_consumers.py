"""Members of share groups for conversations, as far as they fetch and acknowledge: the leader of a partition
does not ask whether the group knows them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from interop.conformance.shares import ShareGroup
from interop.conformance.talk import Expected, Pending, Talk, Topic
from pykafka_broker.protocol.messages import share_acknowledge as acknowledging
from pykafka_broker.protocol.messages import share_fetch as fetching
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1
FINAL = -1
GROUP_RESOURCE = 32
#: The set-up of a member gives up after so many fetches.
PATIENCE = 200
#: Apache Kafka answers a fetch before it lets others have the fetch lock.
LIMITS = {"max_wait_ms": 100, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500}

#: First offset, last offset, types.
Said = tuple[int, ...]


class ShareMember:
    """A member that keeps its session going. Its requests have the version under test if they are about the
    API under test, else the newest.
    """

    def __init__(self, talk: Talk, group: ShareGroup, member_id: str = "ann") -> None:
        self.talk = talk
        self.group = group
        self.id = member_id
        self.epoch = 0

    # ---- requests ----

    def fetching(
        self,
        *partitions: int,
        said: Mapping[int, Iterable[Said]] = {},
        epoch: int | None = None,
        topic: Topic | None = None,
        forget: Iterable[int] = (),
        **more: Any,
    ) -> fetching.ShareFetchRequest:
        """A ShareFetch that names these partitions."""
        topic_id = (topic or self.group.topic).id
        asked = [
            fetching.FetchPartition(
                partition_index=index, acknowledgement_batches=_batches(fetching, said.get(index, ()))
            )
            for index in dict.fromkeys((*partitions, *said))
        ]
        forgotten = list(forget)
        return fetching.ShareFetchRequest(
            **{
                "group_id": self.group.id,
                "member_id": self.id,
                "share_session_epoch": self.epoch if epoch is None else epoch,
                "topics": [fetching.FetchTopic(topic_id=topic_id, partitions=asked)] if asked else [],
                "forgotten_topics_data": [fetching.ForgottenTopic(topic_id=topic_id, partitions=forgotten)]
                if forgotten
                else [],
                **LIMITS,
                **more,
            }
        )

    def acknowledging(
        self, *said: Said, partition: int = 0, epoch: int | None = None, **more: Any
    ) -> acknowledging.ShareAcknowledgeRequest:
        """A ShareAcknowledge of one partition."""
        asked = acknowledging.AcknowledgePartition(
            partition_index=partition, acknowledgement_batches=_batches(acknowledging, said)
        )
        return acknowledging.ShareAcknowledgeRequest(
            **{
                "group_id": self.group.id,
                "member_id": self.id,
                "share_session_epoch": self.epoch if epoch is None else epoch,
                "topics": [acknowledging.AcknowledgeTopic(topic_id=self.group.topic.id, partitions=[asked])],
                **more,
            }
        )

    # ---- what is compared ----

    def fetch(self, *expected: Expected, **details: Any) -> Any:
        """Fetch what the session has, and go on."""
        answer = self.talk.ask(self.fetching(**details), *expected)
        self.epoch += 1
        return answer

    def send(self, **details: Any) -> Pending:
        """Fetch, and do not wait for the answer."""
        pending = self.talk.send(self.fetching(**details))
        self.epoch += 1
        return pending

    def acknowledge(self, *said: Said, expected: Iterable[Expected] = (), **details: Any) -> Any:
        answer = self.talk.ask(self.acknowledging(*said, **details), *expected)
        self.epoch += 1
        return answer

    def gets(self) -> None:
        """Fetch until there are records, and compare which: Apache Kafka does not wake a fetch that waits
        when another member gives records back.
        """
        for _ in range(PATIENCE):
            answer = self.talk.do(self.fetching(max_wait_ms=200))
            self.epoch += 1
            if found := acquired(answer):
                self.talk.note("delivered", str(found))
                return
        raise TimeoutError("Nothing is delivered")

    # ---- set-up ----

    def joined(self, *partitions: int) -> ShareMember:
        """Begin a session of these partitions of which all states are loaded, and which have been told."""
        self.talk.do(self.fetching(*partitions or (0,), epoch=0, max_records=0))
        self.epoch = 1
        return self

    def opened(self, *partitions: int) -> ShareMember:
        """The same for the first member: a record of each partition is produced, fetched and accepted."""
        waiting = set(partitions or (0,))
        for index in waiting:
            self.talk.produce(self.group.topic, b"the first", partition=index)
        self.joined(*waiting)
        for _ in range(PATIENCE):
            answer = self.talk.do(self.fetching(max_wait_ms=200))
            self.epoch += 1
            found = {
                index: [(first, last, ACCEPT) for first, last, _ in records]
                for index, records in acquired(answer).items()
            }
            if found:
                self.talk.do(self.fetching(said=found, max_records=0))
                self.epoch += 1
                waiting -= found.keys()
            if not waiting:
                return self
            time.sleep(0.01)
        raise TimeoutError(f"No record of {waiting} is delivered")


def acquired(answer: fetching.ShareFetchResponse) -> dict[int, list[tuple[int, int, int]]]:
    """First offset, last offset and delivery count of what was acquired, by partition."""
    return {
        each.partition_index: [
            (part.first_offset, part.last_offset, part.delivery_count) for part in each.acquired_records
        ]
        for topic in answer.responses
        for each in topic.partitions
        if each.acquired_records
    }


def begun(talk: Talk, partitions: int = 1, **configs: str) -> ShareGroup:
    """A topic, and a group that begins at its start; keys of the group's configs have _ for dots."""
    group = ShareGroup(talk, partitions=partitions)
    if configs:
        configure(talk, group, **configs)
    return group.begun(*range(partitions))


def configure(talk: Talk, group: ShareGroup, **configs: str) -> None:
    """Set configs of a group. Who leads a later topic knows them."""
    changes = [
        AlterableConfig(name=key.replace("_", "."), config_operation=0, value=value)
        for key, value in configs.items()
    ]
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group.id, configs=changes)
    talk.do(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False))
    talk.topic(f"after-{group.id}")


def _batches(messages: Any, said: Iterable[Said]) -> list[Any]:
    return [
        messages.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
        for first, last, *types in said
    ]
