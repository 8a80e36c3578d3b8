"""The packages that jobs need beside pyspark, said before a job begins."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

import pykafka_broker.spark.replay
from pykafka_broker.spark.archive.formats import parse_format
from pykafka_broker.spark.doctor.machine import about_packages
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.python_packages import MAP_IN_ARROW, insist_on

ROOT = Path(__file__).parents[3]


@pytest.fixture
def only_pyspark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python path on which nothing but pyspark is found anew."""
    import pyspark

    (tmp_path / "pyspark").symlink_to(Path(pyspark.__file__).parent)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    for name in MAP_IN_ARROW:
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_the_extra_for_spark_has_what_jobs_need() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {entry.split(">=")[0].split("==")[0] for entry in extras["spark"]} == {*MAP_IN_ARROW, "pyspark"}


def test_what_is_missing_is_a_sentence_with_its_command() -> None:
    insist_on(MAP_IN_ARROW, "A job needs")
    with pytest.raises(SparkError) as refused:
        insist_on(["numpy", "absent_one", "absent_two"], "A job needs")
    assert str(refused.value) == (
        "A job needs numpy, absent_one and absent_two, and absent_one and absent_two are not installed:\n"
        "  python3 -m pip install absent_one absent_two"
    )


@pytest.mark.usefixtures("only_pyspark")
def test_jobs_say_what_they_lack_before_they_do_anything() -> None:
    with pytest.raises(SparkError, match=r"^A replay needs numpy, pandas and pyarrow, and .*\n.*pip install"):
        pykafka_broker.spark.replay.replay  # noqa: B018 - the command imports it before it starts a session
    with pytest.raises(SparkError, match=r"^Decoding needs numpy, pandas and pyarrow, and "):
        parse_format("value=json:schema.json")


def test_the_doctor_warns_of_what_is_missing(only_pyspark: None) -> None:
    [found] = about_packages()
    assert (found.level, found.message, found.remedy) == (
        "warning",
        "Replays and archives that decode need numpy, pandas and pyarrow, and numpy, pandas and pyarrow are "
        "not installed.",
        "python3 -m pip install numpy pandas pyarrow",
    )


def test_the_doctor_is_silent_where_all_is_there() -> None:
    assert about_packages() == []
