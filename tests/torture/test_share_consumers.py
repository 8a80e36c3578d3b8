"""Fifty consumers of a share group that crash, release, reject and outlive their locks: no record is lost,
and none comes again after its acknowledgement.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pykafka_broker.testing.processes import PykafkaBroker
from tests.torture.harness import tell
from tests.torture.share_consumers import PROPERTIES, run

pytestmark = pytest.mark.slow

ROUNDS = int(os.environ.get("TORTURE_ROUNDS", "10"))
RECORDS_A_ROUND = 400


@pytest.mark.timeout(600 + 30 * ROUNDS)
def test_every_record_is_acknowledged_or_at_its_delivery_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = RECORDS_A_ROUND * ROUNDS
    with PykafkaBroker(PROPERTIES, tmp_path) as broker:
        history = run(broker, records, consumers=50, partitions=4, seed=1)
    tell(capsys, f"{records} records of a share group: {dict(history.events.most_common())}")
    assert history.events["crashed"], "none has crashed"
    assert history.events["release"], "none was released"
