"""The longer stories, told as transcripts. `pytest tests/coordinator --rewrite` writes them anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.transcript import Teller, replay_transcript

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_story_goes_as_told(path: Path, request: pytest.FixtureRequest) -> None:
    told = path.read_text()
    happened = replay_transcript(told, Teller().tell)
    if request.config.getoption("--rewrite"):
        path.write_text(happened)
    else:
        assert happened == told
