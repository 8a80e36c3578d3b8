"""The progress of a follower: the offset that it fetches shows what it has.

The progress is reported once per fetch, after the answer is planned: as in Apache Kafka, the answer has the
high watermark from before the report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from pykafka_broker.apis.fetching.kept_waits import Waited
    from pykafka_broker.apis.fetching.plan import PlannedFetch
    from pykafka_broker.apis.fetching.replica import Follower
    from pykafka_broker.apis.fetching.sessions import WantedPartition
    from pykafka_broker.protocol.messages.fetch import PartitionData


def report_progress(planned: PlannedFetch, follower: Follower) -> None:
    """Report the follower's offsets to its partitions, which may move high watermarks and change ISRs.

    A follower with the epoch of an earlier registration is refused (KIP-903). A partition whose high
    watermark this report moves has news for the follower, and is reopened.
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
            # A move notifies all waiters, including the session of this fetch, which unsettles the partition.
            if waited is not None and (is_moved or wanted not in settled):
                news[wanted] = waited, data
    if errors:
        planned.refuse(errors)
    if news:
        planned.reopen(news)
