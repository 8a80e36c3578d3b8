"""Share groups, and groups of Kafka Streams, in the ACL matrix: groups of which there is something to tell,
and users who are members of share groups at the leader of partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from interop.conformance import share_groups, streams
from interop.conformance.consumer_groups import known
from interop.conformance.share_consumers import ACCEPT, FINAL, LIMITS, ShareMember, acquired
from interop.conformance.shares import SHARE, ShareGroup
from interop.conformance.talk import Talk, Topic
from pykafka_broker.protocol.messages import share_acknowledge as acknowledging
from pykafka_broker.protocol.messages import share_fetch as fetching
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest

MEMBER, ROOT_MEMBER = "member", "root"
AT_ONCE = {"share.assignment.interval.ms": "0"}
#: Apache Kafka may be slow to deliver what is there.
PATIENCE_MS = 10_000
#: Asks a request that is compared.
Ask = Callable[[Any], Any]


# -- groups of which coordinators are asked
# -------------------------------------------


def share_group_without_members(root: Talk, group: str, topic: Topic) -> None:
    """A share group that begins at the start of the topic, and whose partitions are assigned at once."""
    streams.set_configs(root, group, AT_ONCE)
    known(root, root.at_home(f"{group}-probe"), topic)
    root.do(share_groups.setting(group, (topic.name, {0: 0})))


def share_group_with_a_member(root: Talk, group: str, topic: Topic) -> None:
    """Such a group whose member reads the topic."""
    share_group_without_members(root, group, topic)
    share_groups.joined(root, group, MEMBER, topic)


def streams_group_with_a_member(root: Talk, group: str, topic: Topic) -> None:
    """A group of an application that reads the topic."""
    streams.assigns_at_once(root, group)
    streams.joined(root, group, MEMBER, topic)


# -- members at the leader
# --------------------------


class SharedTopics:
    """Topics that groups read from their starts, as a super user prepares them."""

    def __init__(self, root: Talk, groups: Iterable[str], topics: Sequence[Topic]) -> None:
        self._root = root
        self._groups = tuple(groups)
        self._topics = topics
        for group_id in self._groups:
            for topic in topics:
                group = ShareGroup(root, topic)
                group.id = group_id
                coordinator(root, group).do(group.initializing(), version=0)
                # A record that has been delivered shows that the state is loaded.
                member = ShareMember(root, group, ROOT_MEMBER).opened()
                root.do(member.fetching(epoch=FINAL))

    def read(self, api: str, ask: Ask) -> None:
        """Be a member of each group, with a new record in each topic.

        What is delivered is accepted, in a request of the API: the next user finds no record but its own, and
        those that nobody was given.
        """
        for topic in self._topics:
            self._root.produce(topic, b"for one who may read")
        for group_id in self._groups:
            member = {"group_id": group_id, "member_id": MEMBER}
            ask(_fetch(member, 0, self._topics, max_records=0))
            delivered = acquired(ask(_fetch(member, 1, max_wait_ms=PATIENCE_MS))).get(0)
            said = [(first, last) for first, last, _ in delivered] if delivered else [(0, 0)]
            if api == "share_fetch":
                ask(_fetch(member, 2, self._topics, said, max_records=0))
            else:
                ask(_acknowledge(member, 2, self._topics, said))
            ask(_acknowledge(member, FINAL))


def coordinator(root: Talk, group: ShareGroup) -> Talk:
    """A connection to the coordinator of the share partition: in a cluster it need not be the home."""
    if root.home is None:
        return root
    asked = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[group.key()])
    [found] = root.do(asked).coordinators
    return root.to(f"{found.host}:{found.port}")


#: First and last offset of records that are accepted.
Accepted = Iterable[tuple[int, int]]


def _fetch(
    member: Mapping[str, Any],
    epoch: int,
    topics: Iterable[Topic] = (),
    accepted: Accepted = (),
    **limits: Any,
) -> fetching.ShareFetchRequest:
    return fetching.ShareFetchRequest(
        **{**member, **LIMITS, **limits},
        share_session_epoch=epoch,
        topics=[
            fetching.FetchTopic(
                topic_id=topic.id,
                partitions=[
                    fetching.FetchPartition(
                        partition_index=0, acknowledgement_batches=_batches(fetching, accepted)
                    )
                ],
            )
            for topic in topics
        ],
        forgotten_topics_data=[],
    )


def _acknowledge(
    member: Mapping[str, Any], epoch: int, topics: Iterable[Topic] = (), accepted: Accepted = ()
) -> acknowledging.ShareAcknowledgeRequest:
    return acknowledging.ShareAcknowledgeRequest(
        **member,
        share_session_epoch=epoch,
        topics=[
            acknowledging.AcknowledgeTopic(
                topic_id=topic.id,
                partitions=[
                    acknowledging.AcknowledgePartition(
                        partition_index=0, acknowledgement_batches=_batches(acknowledging, accepted)
                    )
                ],
            )
            for topic in topics
        ],
    )


def _batches(messages: Any, accepted: Accepted) -> list[Any]:
    return [
        messages.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[ACCEPT])
        for first, last in accepted
    ]
