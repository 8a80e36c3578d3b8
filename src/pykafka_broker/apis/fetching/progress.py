"""The progress of a follower: by the offset that it asks for, it tells what it has.

It is reported once for each fetch, when its answer has been planned: as in Apache Kafka, the answer has the
high watermark from before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from pykafka_broker.apis.fetching.plan import PlannedFetch
    from pykafka_broker.apis.fetching.replica import Follower
    from pykafka_broker.apis.fetching.sessions import WantedPartition
    from pykafka_broker.apis.fetching.waits import Waited
    from pykafka_broker.protocol.messages.fetch import PartitionData


def report_progress(planned: PlannedFetch, follower: Follower) -> None:
    """Let the leaders know what their follower has, which may move high watermarks and change ISRs.

    A broker that has been registered again since is refused (KIP-903). A high watermark that the fetch itself
    has moved is news that the follower has yet to be told.
    """
    replica_id, broker_epoch = follower
    errors: dict[WantedPartition, ErrorCode] = {}
    news: dict[WantedPartition, tuple[Waited, PartitionData]] = {}
    settled = planned.waits.settled
    for leading, wanted, data in planned.progress:
        waited = settled.get(wanted)
        try:
            leading.follower_fetched(
                replica_id, broker_epoch, wanted.fetch_offset, wanted.asked_log_start_offset
            )
        except KafkaError as error:
            errors[wanted] = error.code
        else:
            is_moved = leading.log.state.high_watermark != data.high_watermark
            # What moves wakes those who wait, and among them the session of this very fetch.
            if waited is not None and (is_moved or wanted not in settled):
                news[wanted] = waited, data
    if errors:
        planned.refuse(errors)
    if news:
        planned.reopen(news)
