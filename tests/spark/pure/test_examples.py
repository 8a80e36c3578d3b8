"""The worked examples as they are started, up to their sessions."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

HERE = Path(__file__).parents[3] / "examples" / "spark"
PROGRAMS = sorted(path.stem for path in HERE.glob("*.py") if "def main(" in path.read_text())


class Started(Exception):
    """A session would be started."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_example_keeps_200_stores_of_state_on_one_machine(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(name: str, *, conf: dict[str, str], **others: object) -> None:
        raise Started(conf["spark.sql.shuffle.partitions"])

    program = import_module(f"examples.spark.{name}")
    monkeypatch.setattr(program, "kafka_session", started)
    monkeypatch.setattr(sys, "argv", [name, "--output", str(tmp_path)])
    with pytest.raises(Started, match=r"^4$"):
        program.main()
