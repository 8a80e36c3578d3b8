"""DeleteRecords on the leader, and the clients that wait until every live replica has deleted the records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pykafka_broker.cluster.image import BrokerRegistration
from pykafka_broker.machine.clock import Clock
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.replication.core.low_watermark import low_watermark
from pykafka_broker.replication.led_log import LedLog
from pykafka_broker.replication.waiting import WaitingClients
from pykafka_broker.system.named_tuple import NamedTuple

#: The offset in DeleteRecords that stands for the high watermark.
HIGH_WATERMARK = -1


class DeletedRecords(NamedTuple):
    """The records below `offset` are deleted here, and on every live replica those below `low_watermark`."""

    offset: int
    low_watermark: int


class RecordsDeletion:
    """The deletions of one partition that this node leads. Event loop only."""

    __slots__ = ("_led", "_registration_of", "_waiting")

    def __init__(
        self, led: LedLog, registration_of: Callable[[int], BrokerRegistration | None], clock: Clock
    ) -> None:
        self._led = led
        self._registration_of = registration_of
        self._waiting: WaitingClients[int] = WaitingClients(clock)

    def delete(self, before_offset: int) -> DeletedRecords:
        """Delete the records below an offset (-1: the high watermark) here; followers do so when they fetch.

        Raises:
            KafkaError: POLICY_VIOLATION for a topic that is only compacted, OFFSET_OUT_OF_RANGE beyond the
                high watermark.
        """
        log = self._led.log
        cleanup_policy = log.state.config.cleanup_policy
        if "delete" not in cleanup_policy and cleanup_policy:
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        offset = log.state.high_watermark if before_offset == HIGH_WATERMARK else before_offset
        log.trimmer.delete_records(before_offset)
        return DeletedRecords(offset, self.low_watermark)

    def everywhere(self, offset: int, timeout_ms: int) -> Awaitable[ErrorCode] | None:
        """None if every live replica has deleted the records below `offset`, otherwise an awaitable for that.

        It gives REQUEST_TIMED_OUT after `timeout_ms`, NOT_LEADER_OR_FOLLOWER if another broker leads first.
        """
        if offset <= self.low_watermark:
            return None
        return self._waiting.wait(offset, timeout_ms)

    @property
    def low_watermark(self) -> int:
        """The offset below which all live replicas have deleted; -1 while the start of one is unknown."""
        leadership, log_start_offset = self._led.leadership, self._led.log.state.log_start_offset
        if leadership is None or not leadership.followers:
            return log_start_offset
        live = {
            replica_id
            for replica_id in leadership.followers
            if (broker := self._registration_of(replica_id)) is not None and not broker.fenced
        }
        return low_watermark(leadership, log_start_offset, live)

    def followers_moved(self) -> None:
        """Answer the clients whose records all live replicas have deleted."""
        if self._waiting:
            low_watermark = self.low_watermark
            self._waiting.answer(lambda offset: ErrorCode.NONE if offset <= low_watermark else None)

    def resign(self) -> None:
        """Let waiting clients ask the next leader."""
        self._waiting.answer(lambda _: ErrorCode.NOT_LEADER_OR_FOLLOWER)
