"""What each node tells about leaders and ISRs, from the metadata before and after a change."""

from __future__ import annotations

from typing import Any

from pykafka_broker.broker.partition_history import MOST_AT_ONCE, OFFLINE, UNCLEAN, changes, follow
from pykafka_broker.cluster.image import (
    NO_LEADER,
    BrokerRegistration,
    ClusterImage,
    LeaderRecoveryState,
    PartitionRegistration,
    TopicImage,
)
from pykafka_broker.machine.history import Decision, Kind

ID = b"o" * 16


BROKERS = {number: BrokerRegistration(number, 7, bytes(16), {}, fenced=False) for number in (1, 2)}


def image(partition: PartitionRegistration, **of_broker_1: Any) -> ClusterImage:
    """Metadata with one partition, and with something that has become of broker 1."""
    brokers = {**BROKERS, 1: BROKERS[1]._replace(**of_broker_1)} if of_broker_1 else BROKERS
    return ClusterImage(brokers=brokers, topics={"orders": TopicImage("orders", ID, {0: partition})})


BOTH = PartitionRegistration(0, (1, 2), (1, 2), 1, leader_epoch=4)
ONE = BOTH._replace(isr=(1,))


def told(old: ClusterImage, new: ClusterImage) -> list[tuple[str, str]]:
    found = list(changes(old, new))
    assert all(isinstance(each, Decision) and each.kind is Kind.PARTITION for each in found)
    assert all(each.names == ("orders-0",) for each in found)
    return [(each.text, each.remedy) for each in found]


def test_a_partition_goes_offline_when_the_last_broker_in_sync_is_fenced() -> None:
    new = image(ONE._replace(leader=NO_LEADER, leader_epoch=5), fenced=True)

    assert told(image(ONE), new) == [
        (
            "The partition went offline: no replica may lead it after broker 1, because broker 1 was fenced "
            "(no heartbeat within broker.session.timeout.ms, or it stopped). The leader epoch is 5.",
            OFFLINE,
        )
    ]


def test_a_partition_goes_offline_when_the_disk_of_the_last_replica_in_sync_fails() -> None:
    healthy, failed, other = b"h" * 16, b"f" * 16, b"o" * 16
    before = ONE._replace(directories=(failed, other))
    after = before._replace(leader=NO_LEADER, leader_epoch=5)

    [(text, remedy)] = told(
        image(before, directories=(failed, healthy)), image(after, directories=(healthy,))
    )

    assert text == (
        "The partition went offline: no replica may lead it after broker 1, because broker 1 took the log "
        "directory of its replica out of service (the disk failed). The leader epoch is 5."
    )
    assert remedy == OFFLINE


def test_the_next_leader_the_isr_and_the_reason_are_told_together() -> None:
    new = image(BOTH._replace(leader=2, isr=(2,), leader_epoch=5), in_controlled_shutdown=True)

    assert told(image(BOTH), new) == [
        (
            "Broker 2 became the leader after broker 1, because broker 1 shuts down. The leader epoch is 5. "
            "The ISR is [2] instead of [1, 2].",
            "",
        )
    ]


def test_an_unclean_election_says_that_records_are_lost() -> None:
    offline = ONE._replace(leader=NO_LEADER)
    unclean = offline._replace(
        leader=2, isr=(2,), leader_epoch=6, leader_recovery_state=LeaderRecoveryState.RECOVERING
    )

    [(text, remedy)] = told(image(offline), image(unclean))

    assert text.startswith("An unclean election made broker 2 the leader after none.")
    assert remedy == UNCLEAN


def test_a_follower_that_joins_is_told_and_a_partition_that_stays_is_not() -> None:
    assert told(image(ONE), image(BOTH)) == [("The ISR is [1, 2], with [2]. The leader is broker 1.", "")]
    before = image(BOTH)
    assert told(before, before._replace(offset=9)) == []
    assert told(before, image(BOTH._replace(partition_epoch=9))) == []


def test_a_broker_that_led_thousands_of_partitions_is_told_about_within_a_limit() -> None:
    def all_led_by(leader: int) -> ClusterImage:
        partitions = {index: BOTH._replace(leader=leader) for index in range(MOST_AT_ONCE + 1)}
        return ClusterImage(brokers=BROKERS, topics={"orders": TopicImage("orders", ID, partitions)})

    found: list[Decision] = []
    follow(found.append)(all_led_by(1), all_led_by(2))

    assert [each.names for each in found] == [(f"orders-{index}",) for index in range(MOST_AT_ONCE)]
