"""`spark checkpoint` of a folder that is as Spark leaves it."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import run_command
from tests.support.checkpoints import make_checkpoint


def test_a_topic_that_was_created_anew_stays_another_one_until_the_repair(
    broker: str, tmp_path: Path
) -> None:
    folder, topic = str(make_checkpoint(tmp_path / "checkpoint", [{("reborn", 0): 1}])), "reborn"

    def run(*words: str) -> int:
        return run_command(*words, "-b", broker).status

    def inspect() -> int:
        return run("spark", "checkpoint", "inspect", folder, "--remember")

    def create() -> None:
        assert run("topics", "create", topic) == 0
        assert run("produce", topic, "value") == 0

    create()
    assert inspect() == 0
    assert run("topics", "delete", topic) == 0
    assert inspect() == 1
    create()
    assert [inspect(), inspect()] == [1, 1]
    assert run("spark", "checkpoint", "repair", folder, "--yes") == 0
    assert [inspect(), inspect()] == [0, 0]
