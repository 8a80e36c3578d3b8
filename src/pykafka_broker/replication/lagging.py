"""Why a follower is not in sync, in words: for the history of the node, and for explanations. Pure."""

from __future__ import annotations

from pykafka_broker.machine.history import Decision, Kind
from pykafka_broker.replication.core.events import IsrProposal, TimePassed
from pykafka_broker.replication.core.state import UNKNOWN_OFFSET, Leadership
from pykafka_broker.system.wording import duration

LAGS = (
    "Look whether its broker runs, reaches this one, and keeps up: its disk, its network, "
    "num.replica.fetchers. It joins the ISR again by itself."
)


def why_not_in_sync(
    partition: str, leadership: Leadership, event: TimePassed, change: IsrProposal
) -> Decision:
    """The decision of a leader to ask for an ISR without the followers that lag."""
    kept = {replica_id for replica_id, _ in change.new_isr}
    lagging = [
        progress_of(leadership, replica_id, event.log.log_end_offset, event.now_ms)
        for replica_id in leadership.isr.committed
        if replica_id not in kept
    ]
    text = (
        f"The leader, broker {leadership.node_id}, asked for the ISR {sorted(kept)} instead of "
        f"{sorted(leadership.isr.committed)} (replica.lag.time.max.ms={leadership.lag_time_max_ms}). "
        f"{' '.join(lagging)}"
    )
    return Decision(Kind.PARTITION, (partition,), text, LAGS)


def progress_of(leadership: Leadership, replica_id: int, log_end_offset: int, now_ms: int) -> str:
    """A sentence about how far a follower is behind; `now_ms` is monotonic."""
    follower = leadership.followers[replica_id]
    if follower.fetched_ms is None:
        return f"Broker {replica_id} has not fetched since this leadership began."
    behind = log_end_offset - follower.log_end_offset
    has = "has nothing yet" if follower.log_end_offset == UNKNOWN_OFFSET else f"is {behind:,} records behind"
    caught_up = (
        "never had all records of this leader"
        if follower.caught_up_ms is None
        else f"last had all records {duration(now_ms - follower.caught_up_ms)} ago"
    )
    return (
        f"Broker {replica_id} fetched last {duration(now_ms - follower.fetched_ms)} ago, {has}, and "
        f"{caught_up}."
    )
