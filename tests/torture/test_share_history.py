"""What counts as an anomaly of a share group."""

from __future__ import annotations

from pykafka_broker.client.core.share_group import Acknowledgement
from tests.torture.share_history import DELIVERY_LIMIT, Place, ShareHistory, anomalies

ONE, TWO = Place(0, 1), Place(1, 2)


def history(*deliveries: tuple[Place, int]) -> ShareHistory:
    found = ShareHistory()
    for place, count in deliveries:
        found.delivered(place, count)
    return found


def test_records_that_are_accepted_rejected_or_were_delivered_often_enough_are_done() -> None:
    three = Place(2, 0)
    found = history((ONE, 1), (TWO, 1), *((three, count) for count in range(1, DELIVERY_LIMIT + 1)))
    found.took(ONE, Acknowledgement.ACCEPT)
    found.took(TWO, Acknowledgement.REJECT)
    assert anomalies(found, {ONE, TWO, three}) == {}


def test_a_record_that_was_released_is_not_done() -> None:
    found = history((ONE, 1))
    found.took(ONE, Acknowledgement.RELEASE)
    assert anomalies(found, {ONE}) == {"left over": [ONE]}


def test_a_record_that_never_came_is_lost() -> None:
    assert anomalies(history(), {ONE}) == {"never delivered": [ONE], "left over": [ONE]}


def test_a_record_that_comes_after_its_acknowledgement_comes_again() -> None:
    for final in (Acknowledgement.ACCEPT, Acknowledgement.REJECT):
        found = history((ONE, 1))
        found.took(ONE, final)
        found.delivered(ONE, 2)
        assert anomalies(found, {ONE}) == {"delivered again after its acknowledgement": [ONE]}


def test_a_record_may_come_again_where_it_is_not_known_whether_its_acknowledgement_was_taken() -> None:
    found = history((ONE, 1))
    found.lost_sight(ONE, Acknowledgement.ACCEPT)
    found.delivered(ONE, 2)
    assert anomalies(found, {ONE}) == {}


def test_no_record_comes_more_often_than_the_group_allows_nor_from_nowhere() -> None:
    found = history((ONE, DELIVERY_LIMIT + 1), (TWO, 1))
    assert anomalies(found, {ONE}) == {
        "delivered and never written": [TWO],
        "delivered too often": [ONE],
    }
