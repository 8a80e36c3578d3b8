"""The longer stories of transactions. `pytest tests/coordinator --rewrite` writes the transcripts anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.transcript import replay_transcript
from tests.support.txn_transcript import Teller

TRANSCRIPTS = sorted((Path(__file__).parent / "txn_transcripts").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_story_goes_as_told(path: Path, request: pytest.FixtureRequest) -> None:
    told = path.read_text()
    happened = replay_transcript(told, Teller().tell)
    if request.config.getoption("--rewrite"):
        path.write_text(happened)
    else:
        assert happened == told
