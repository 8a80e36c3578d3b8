"""Up to where have all replicas deleted their records?"""

from __future__ import annotations

from pykafka_broker.replication.core.low_watermark import low_watermark
from tests.replication.leading import after, fetched, leading


def test_the_replica_that_has_deleted_least_decides() -> None:
    followed = after(
        leading(1, 2, 3),
        fetched(2, 100)._replace(log_start_offset=40),
        fetched(3, 100)._replace(log_start_offset=60),
    )
    assert low_watermark(followed, 50, live={2, 3}) == 40
    assert low_watermark(followed, 30, live={2, 3}) == 30


def test_replicas_whose_broker_is_gone_are_not_waited_for() -> None:
    followed = after(leading(1, 2, 3), fetched(2, 100)._replace(log_start_offset=40))
    assert low_watermark(followed, 50, live={2, 3}) == -1, "broker 3 lives, and has not told"
    assert low_watermark(followed, 50, live={2}) == 40
    assert low_watermark(followed, 50, live=set()) == 50
