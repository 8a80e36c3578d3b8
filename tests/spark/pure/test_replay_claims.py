"""The text beside the progress of a replay: whose it is."""

from __future__ import annotations

import pytest

from pykafka_broker.spark.replay.claims import Claim, difference, written

CLAIM = Claim("orders", 1, "id-of-orders", '{"since":5}', "id-of-target")


def test_a_claim_is_known_again() -> None:
    assert written(CLAIM) == (
        'replay {"from":"orders-1","topic_id":"id-of-orders","bounds":"{\\"since\\":5}",'
        '"target_id":"id-of-target"}'
    )
    assert difference(CLAIM, written(CLAIM)) == ""


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (CLAIM._replace(partition=2), "is of records of orders-2, not of orders-1"),
        (
            CLAIM._replace(topic_id="older"),
            "is of the topic 'orders' with the id older, not id-of-orders",
        ),
        (CLAIM._replace(bounds=""), "is of another window: everything"),
        (CLAIM._replace(target_id="gone"), "is of a topic that was deleted since and created anew"),
    ],
)
def test_progress_of_another_replay_is_told_with_the_reason(other: Claim, reason: str) -> None:
    assert difference(CLAIM, written(other)) == reason


@pytest.mark.parametrize("text", ["", "of a consumer", "[1]", "7"])
def test_offsets_of_consumers_are_no_progress(text: str) -> None:
    assert difference(CLAIM, text).startswith("is not of a replay")


def test_a_long_window_fits_beside_an_offset() -> None:
    long = CLAIM._replace(bounds="x" * 100_000)
    assert len(written(long)) < 1_000
    assert difference(long, written(long)) == ""
    assert difference(long, written(long._replace(bounds="y" * 100_000))) != ""
