"""A share partition core with nothing around it: virtual time, recorded answers, writes that wait.

`Share` does what the shell does, at once. Writes are not answered by themselves: `written` and `failed`
answer the oldest.
"""

from __future__ import annotations

from typing import Any, Optional

from pykafka_broker.machine.step import Reply, SetTimer, Start
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.share.core import events
from pykafka_broker.share.core.batch import Piece
from pykafka_broker.share.core.config import ShareConfig
from pykafka_broker.share.core.events import (
    AbortedTransaction,
    AcknowledgementBatch,
    AcknowledgeType,
    AcquireMode,
    FetchedBatch,
    Result,
)
from pykafka_broker.share.core.records import StateWrite, WrittenBatch
from pykafka_broker.share.core.state import SharePartition
from pykafka_broker.share.core.transitions import transition
from pykafka_broker.share.core.turn import LOCK_TIMER

GAP, ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
LOCK_MS = 30_000
#: The settings of a broker for which none are given.
DEFAULT_CONFIG = ShareConfig()


class Share:
    """One share partition, the time, and the writes on their way."""

    def __init__(
        self,
        start_offset: int = 0,
        batches: tuple[WrittenBatch, ...] = (),
        config: ShareConfig = DEFAULT_CONFIG,
    ) -> None:
        self.config = config
        self.now_ms = 0
        self.state = SharePartition()
        self.timer: Optional[int] = None
        self.answers: dict[int, Any] = {}
        self.writes: list[StateWrite] = []
        self.started: list[object] = []
        self._tokens = 0
        self.ask(events.Initialize)
        self.submit(events.StateRead(ErrorCode.NONE, None, 1, start_offset, batches))

    def submit(self, event: events.Event) -> None:
        step = transition(self.state, event, self.config)
        self.state = step.state
        self.writes += [record for record in step.records if isinstance(record, StateWrite)]
        self.started = []
        for effect in step.effects:
            if isinstance(effect, Reply):
                self.answers[effect.token] = effect.result
            elif isinstance(effect, SetTimer):
                self.timer = effect.at_ms
            elif isinstance(effect, Start):
                self.started.append(effect.work)

    def ask(self, event: type, *args: Any) -> Any:
        """The answer to a request; None if it waits for a write."""
        self._tokens += 1
        self.submit(event(self._tokens, *args))
        return self.answers.get(self._tokens)

    @property
    def last_answer(self) -> Any:
        return self.answers.get(self._tokens)

    # ---- fetching ----

    def next_offset(self) -> Optional[int]:
        """Where a fetch may begin now; None if it may not."""
        found: Optional[int] = self.ask(events.BeginFetch, 1)
        self.submit(events.EndFetch(1))
        return found

    def acquire(
        self,
        member_id: str,
        *batches: tuple[int, int] | FetchedBatch,
        max_records: int = 500,
        batch_size: int = 500,
        mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED,
        aborted: tuple[AbortedTransaction, ...] = (),
        fetch_offset: Optional[int] = None,
    ) -> list[tuple[int, int, int]]:
        """What a member gets of what was read: first offset, last offset, delivery count."""
        begin = self.next_offset() if fetch_offset is None else fetch_offset
        answer = self.ask(
            events.Acquire,
            self.now_ms,
            member_id,
            batches[0][0] if begin is None else begin,
            tuple(FetchedBatch(*batch) for batch in batches),
            max_records,
            batch_size,
            mode,
            aborted,
        )
        return [tuple(records) for records in answer.records]

    # ---- acknowledging ----

    def acknowledge(self, member_id: str, *said: tuple[Any, ...]) -> Optional[Result]:
        """Each is a first offset, a last offset, and types."""
        batches = tuple(
            AcknowledgementBatch(first, last, types)
            for first, last, *types_ in said
            for types in [tuple(types_)]
        )
        answer: Optional[Result] = self.ask(events.Acknowledge, self.now_ms, member_id, batches)
        return answer

    def accept(self, member_id: str, first_offset: int, last_offset: int) -> None:
        """Accept consecutive records, and have it written."""
        assert self.acknowledge(member_id, (first_offset, last_offset, ACCEPT)) is None
        self.written()

    def release(self, member_id: str, first_offset: int, last_offset: int) -> None:
        """Release consecutive records, and have it written."""
        assert self.acknowledge(member_id, (first_offset, last_offset, RELEASE)) is None
        self.written()

    def close(self, member_id: str) -> Optional[Result]:
        answer: Optional[Result] = self.ask(events.ReleaseMember, self.now_ms, member_id)
        return answer

    # ---- the share coordinator, the log, the time ----

    def written(self) -> None:
        write = self.writes.pop(0)
        self.submit(events.WriteDone(self.now_ms, write.write_id))

    def failed(self, error: ErrorCode = ErrorCode.COORDINATOR_NOT_AVAILABLE) -> None:
        write = self.writes.pop(0)
        self.submit(events.WriteDone(self.now_ms, write.write_id, error, "sorry"))

    def cut_log(self, log_start_offset: int) -> None:
        self.submit(events.LogStartMoved(log_start_offset))

    def pass_ms(self, ms: int) -> None:
        """Time passes; the timer fires when it is due."""
        end = self.now_ms + ms
        while self.timer is not None and self.timer <= end:
            self.now_ms, self.timer = max(self.now_ms, self.timer), None
            self.submit(events.TimerFired(LOCK_TIMER, self.now_ms))
        self.now_ms = end

    # ---- what is there ----

    def records(self) -> list[str]:
        """The records in flight: "5-9 acquired 1 ann", with a "?" while a write is on its way."""
        return [
            _in_words(piece)
            for batch in self.state.batches
            for piece in batch.pieces(batch.first_offset, batch.last_offset)
        ]


def _in_words(piece: Piece) -> str:
    state = piece.state
    delivery = state.delivery.name.lower() + ("?" if state.rollback else "")
    words = f"{piece.first_offset}-{piece.last_offset} {delivery} {state.delivery_count} {state.member_id}"
    return words.rstrip()
