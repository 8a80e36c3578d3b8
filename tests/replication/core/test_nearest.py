"""From which replica does a consumer read?"""

from __future__ import annotations

from pykafka_broker.replication.core.nearest import nearest_replica
from pykafka_broker.replication.core.state import Leadership
from tests.replication.leading import NOW_MS, after, fetched, leading

RACKS = {1: "a", 2: "b", 3: "b"}


def followed(two: int = 100, three: int = 100) -> Leadership:
    return after(
        leading(1, 2, 3),
        fetched(2, two)._replace(log_start_offset=10),
        fetched(3, three, at_ms=NOW_MS + 5)._replace(log_start_offset=0),
    )


def test_the_leader_serves_its_own_rack_and_racks_without_a_replica() -> None:
    assert nearest_replica(followed(), "a", RACKS, 50) is None
    assert nearest_replica(followed(), "c", RACKS, 50) is None


def test_in_another_rack_the_follower_with_most_of_the_log_serves() -> None:
    assert nearest_replica(followed(two=100, three=90), "b", RACKS, 50) == 2
    assert nearest_replica(followed(two=90, three=100), "b", RACKS, 50) == 3
    assert nearest_replica(followed(), "b", RACKS, 50) == 3, "it had everything last"


def test_a_follower_has_to_have_the_offset() -> None:
    assert nearest_replica(followed(two=80, three=70), "b", RACKS, 75) == 2
    assert nearest_replica(followed(two=80, three=70), "b", RACKS, 81) is None
    assert nearest_replica(followed(), "b", RACKS, 5) == 3, "the log of broker 2 starts later"


def test_a_follower_out_of_sync_or_out_of_reach_serves_nobody() -> None:
    lagging = after(leading(1), fetched(2, 100)._replace(log_start_offset=0, is_active=False))
    assert nearest_replica(lagging, "b", RACKS, 50) is None
    assert nearest_replica(followed(), "b", {1: "a"}, 50) is None
    assert nearest_replica(leading(1, 2), "b", RACKS, 0) is None, "it has not fetched yet"
