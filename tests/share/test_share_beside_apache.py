"""The same random events for Apache Kafka 4.3.1's SharePartition and for ours, and the same outcome of each.

Compared are answers, errors, acquired records and delivery counts, the state of every record, what is
written, and the offsets. Three things ours does otherwise, so that a share partition goes on where Apache's
stands still:

    the start offset moves at once when records of aborted transactions or compacted ones are archived, and
    when a write has failed; this is taken out here
    records below the start offset are never acquired, and never available again
    a gap of a loaded state that holds no records is read once

The last two need a log that is cut, and a state that is loaded; both are left out. Needs a JDK.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.share.core import acquire, events, start_offset, writing
from pykafka_broker.share.core.turn import Turn
from tests.support.apache_share_partition import ApacheFailedError, ApacheShares, WorldBesideApache

SEEDS = range(60)
STEPS = 200
#: What Apache's code throws, and ours answers: an acknowledgement from before all that is in flight, and a
#: read that begins behind the end offset of a full share partition.
APACHE_FAILS = ('"floorOffset" is null', "inconsistent range")


@pytest.fixture
def apache(tmp_path: Path) -> Iterator[ApacheShares]:
    shares = ApacheShares(tmp_path)
    yield shares
    shares.close()


@pytest.fixture
def as_apache(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start offset moves only after a write that was successful, or of locks that timed out."""
    move, done = start_offset.move_behind_done, writing.on_write_done
    failed = False

    def moved(turn: Turn) -> bool:
        return not failed and move(turn)

    def on_write_done(state: Any, event: events.WriteDone, config: Any) -> Any:
        nonlocal failed
        waits = any(p.write.write_id == event.write_id and p.token is not None for p in state.writes)
        failed = waits and event.error is not ErrorCode.NONE
        return done(state, event, config)

    monkeypatch.setattr(acquire, "move_behind_done", lambda turn: False)
    monkeypatch.setattr(writing, "move_behind_done", moved)
    monkeypatch.setattr(writing, "on_write_done", on_write_done)


@pytest.mark.slow
@pytest.mark.usefixtures("as_apache")
def test_a_share_partition_does_what_apaches_does(apache: ApacheShares) -> None:
    compared = unfinished = 0
    for seed in SEEDS:
        world = WorldBesideApache(seed, apache=apache)
        try:
            world.run(STEPS)
        except ApacheFailedError as failure:
            assert any(known in str(failure) for known in APACHE_FAILS), failure
            unfinished += 1
        compared += world.compared

    assert compared > 100 * len(SEEDS)
    assert unfinished < len(SEEDS) / 10
