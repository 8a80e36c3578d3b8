"""Changes of leaders and ISRs in the metadata, as decisions of the controller for the history of this node.

Every node sees them, so that a node that runs can tell about a partition whose brokers have ended. The reason
is what has become of the brokers in the same metadata. The controller's own log has `decision_lines.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from pykafka_broker.cluster.image import (
    NO_LEADER,
    BrokerRegistration,
    ClusterImage,
    LeaderRecoveryState,
    PartitionRegistration,
)
from pykafka_broker.cluster.replica_directories import has_online_directory
from pykafka_broker.machine.history import Decision, Kind, Tell

#: The most decisions of one change of the metadata: a broker that ends may have led thousands of partitions,
#: and their words would hold up the failover.
MOST_AT_ONCE = 1_000

OFFLINE = (
    "Start the brokers that have its replicas; mend or replace a disk that failed, and start its broker "
    "again. If they are lost for good, `pykafka-broker elections unclean` lets another replica lead, which "
    "loses records."
)
UNCLEAN = "The new leader was not in sync: records that it lacked are lost."


def follow(tell: Tell) -> Callable[[ClusterImage, ClusterImage], None]:
    """Tells the first `MOST_AT_ONCE` changes of each new image. Subscribe it to current metadata."""

    def published(old: ClusterImage, new: ClusterImage) -> None:
        for decision in islice(changes(old, new), MOST_AT_ONCE):
            tell(decision)

    return published


def changes(old: ClusterImage, new: ClusterImage) -> Iterator[Decision]:
    """What changed in the partitions that differ between `old` and `new`."""
    if new.topics is old.topics:
        return
    for name, topic in new.topics.items():
        before = old.topics.get(name)
        if before is None or before is topic or before.topic_id != topic.topic_id:
            continue
        for index, partition in topic.partitions.items():
            was = before.partitions.get(index)
            if was is not None and was is not partition:
                yield from _changed(f"{name}-{index}", was, partition, old, new)


def _changed(
    name: str, was: PartitionRegistration, now: PartitionRegistration, old: ClusterImage, new: ClusterImage
) -> Iterator[Decision]:
    why = _why(was, old, new)
    if now.leader != was.leader:
        recovers = now.leader_recovery_state != was.leader_recovery_state == LeaderRecoveryState.RECOVERED
        if now.leader == NO_LEADER:
            text = f"The partition went offline: no replica may lead it after {_broker(was.leader)}{why}."
            remedy = OFFLINE
        elif recovers and now.leader not in was.last_known_elr:
            before = _broker(was.leader)
            text = f"An unclean election made broker {now.leader} the leader after {before}{why}."
            remedy = UNCLEAN
        else:
            text = f"Broker {now.leader} became the leader after {_broker(was.leader)}{why}."
            remedy = ""
        isr = "" if now.isr == was.isr else f" The ISR is {list(now.isr)} instead of {list(was.isr)}."
        text = f"{text} The leader epoch is {now.leader_epoch}.{isr}"
        yield Decision(Kind.PARTITION, (name,), text, remedy)
    elif set(now.isr) != set(was.isr):
        gone, come = sorted(set(was.isr) - set(now.isr)), sorted(set(now.isr) - set(was.isr))
        parts = [f"without {gone}"] if gone else []
        parts += [f"with {come}"] if come else []
        text = f"The ISR is {list(now.isr)}, {' and '.join(parts)}{why}. The leader is {_broker(now.leader)}."
        yield Decision(Kind.PARTITION, (name,), text)


def _broker(broker_id: int) -> str:
    return "none" if broker_id == NO_LEADER else f"broker {broker_id}"


def _why(was: PartitionRegistration, old: ClusterImage, new: ClusterImage) -> str:
    """What has become of the partition's brokers in this metadata."""
    if new.brokers is old.brokers:
        return ""
    found = []
    for broker_id in sorted({*was.replicas}):
        what = _became(was, old.brokers.get(broker_id), new.brokers.get(broker_id))
        if what:
            found.append(f"broker {broker_id} {what}")
    return f", because {' and '.join(found)}" if found else ""


def _became(
    partition: PartitionRegistration, was: BrokerRegistration | None, now: BrokerRegistration | None
) -> str:
    if was is None or was is now:
        return ""
    if now is None:
        return "was unregistered"
    if now.fenced and not was.fenced:
        return "was fenced (no heartbeat within broker.session.timeout.ms, or it stopped)"
    if has_online_directory(was, partition) and not has_online_directory(now, partition):
        return "took the log directory of its replica out of service (the disk failed)"
    if was.fenced and not now.fenced:
        return "was unfenced"
    if now.in_controlled_shutdown and not was.in_controlled_shutdown:
        return "shuts down"
    return "has started again" if now.epoch != was.epoch else ""
