"""Random steps of a share coordinator by seed, and bugs planted on purpose that they must find."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.coordinator.share.core import batches, checks, housekeeping, records, requests, turn
from pykafka_broker.coordinator.share.core.events import StateResult
from pykafka_broker.coordinator.share.core.records import Snapshot
from pykafka_broker.coordinator.share.core.state import Shares
from pykafka_broker.machine.step import Reply
from pykafka_broker.protocol.errors import ErrorCode
from tests.support.planted_bug import Bug
from tests.support.share_model import ShareModel

SEEDS = range(12)
STEPS = 120
#: The rarest of the planted bugs takes some lives of the model to show.
LIVES_TO_FIND_A_BUG = 40


def test_the_share_coordinator_holds_whatever_happens() -> None:
    answered = set()
    for seed in SEEDS:
        model = ShareModel(seed)
        model.run(STEPS)
        answered |= model.answered
    assert answered == {
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.FENCED_STATE_EPOCH,
        "pruned",
    }


def _keeps_the_count(applied: Any) -> Any:
    def spoilt(entry: Any, *rest: Any) -> Any:
        after = applied(entry, *rest)
        return after if after is None else after._replace(update_count=0)

    return spoilt


def _forgets_the_highest(applied: Any) -> Any:
    def spoilt(entry: Any, *rest: Any) -> Any:
        after = applied(entry, *rest)
        return after if after is None else after._replace(highest_leader_epoch=after.state.leader_epoch)

    return spoilt


def _at_the_first_offset(written: Any) -> Any:
    """All snapshots of one batch are thought to be where the batch begins."""

    def spoilt(state: Any, log: Any, records: Any, *effects: Any) -> Any:
        step = written(state, log, records, *effects)
        moved = {
            record.key: step.state.by_key[record.key]._replace(snapshot_offset=log.end_offset)
            for record in records
            if isinstance(record, Snapshot) and record.key in step.state.by_key
        }
        return step._replace(state=step.state._replace(by_key=step.state.by_key.with_changes(moved)))

    return spoilt


def _without_a_record(on_delete: Any) -> Any:
    def spoilt(state: Any, event: Any, log: Any) -> Any:
        step = on_delete(state, event, log)
        return step._replace(records=(), effects=(Reply(event.token, StateResult()),))

    return spoilt


def _newest_instead_of_oldest(_: Any) -> Any:
    return lambda state: max((entry.snapshot_offset for entry in state.by_key.values()), default=None)


def _of_what_is_new_only(combined: Any) -> Any:
    return lambda known, new, start_offset: combined((), new, start_offset)


def _known_before_new(combined: Any) -> Any:
    """What is written last counts, and does so only where nothing was known."""

    def spoilt(known: Any, new: Any, start_offset: Any) -> Any:
        known = tuple(known)
        offsets = {offset for batch in known for offset in range(batch[0], batch[1] + 1)}
        return combined(known, [batch for batch in new if batch[0] not in offsets], start_offset)

    return spoilt


BUGS = [
    Bug("delivery states do not count", batches, "rank", lambda _: lambda b: (b.delivery_count, 0)),
    Bug("delivery counts do not count", batches, "rank", lambda _: lambda b: (0, b.delivery_state)),
    Bug("the lower rank counts", batches, "rank", lambda right: lambda b: tuple(-n for n in right(b))),
    Bug("what is before the start offset stays", batches, "from_offset", lambda _: lambda b, _offset: b),
    Bug("an overlap of one offset stays", batches, "touch", lambda _: lambda a, b: b[0] < a[1]),
    Bug("an update forgets the batches before it", records, "combined", _of_what_is_new_only),
    Bug("an update does not overwrite", records, "combined", _known_before_new),
    Bug("a snapshot has new batches only", requests, "combined", _of_what_is_new_only),
    Bug("an update sets a start offset of -1", records, "NO_START_OFFSET", lambda _: -2),
    Bug("a snapshot sets a start offset of -1", requests, "NO_START_OFFSET", lambda _: -2),
    Bug("nobody is fenced", checks, "is_fenced", lambda _: lambda requested, highest: False),
    Bug("the present epoch is fenced", checks, "is_fenced", lambda _: lambda r, h: r != -1 and h >= r),
    Bug("an epoch of -1 is fenced", checks, "NO_EPOCH", lambda _: -2),
    Bug("a reset lets older leaders in", turn, "applied", _forgets_the_highest),
    Bug("snapshots never come", turn, "applied", _keeps_the_count),
    Bug("snapshots of one batch are at one offset", housekeeping, "written", _at_the_first_offset),
    Bug("a deletion is not written down", requests, "on_delete", _without_a_record),
    Bug("the log is cut at the newest snapshot", Shares, "redundant_offset", _newest_instead_of_oldest),
    Bug("a read does not fence older leaders", requests, "NO_EPOCH", lambda _: 3),
    Bug(
        "idle snapshots have no epoch of their own",
        housekeeping,
        "Snapshot",
        lambda right: (
            lambda key, state: right(key, state and state._replace(snapshot_epoch=state.snapshot_epoch - 1))
        ),
    ),
    Bug(
        "only one share partition of a topic is forgotten",
        housekeeping,
        "written",
        lambda right: (
            lambda state, log, found, *effects: right(state, log, found if effects else found[:1], *effects)
        ),
    ),
]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)

    with pytest.raises(AssertionError):
        for seed in range(LIVES_TO_FIND_A_BUG):
            ShareModel(seed).run(STEPS)
