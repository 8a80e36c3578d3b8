"""`spark replay` before it starts a session, and what it says at its end."""

from __future__ import annotations

import pytest

from pykafka_broker.cli.cluster import Cluster
from pykafka_broker.cli.spark.replay import Source, options_of, total_of
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.replay import Replayed
from pykafka_broker.spark.replay.writing import Written
from tests.cli.conftest import Run, run_command
from tests.cli.test_main import unused_address

CLUSTER = Cluster("here:9092", 30.0)


@pytest.fixture(autouse=True)
def without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """No session starts, so that what is said is said before."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")


def test_folders_and_topics_are_read_without_aborted_records_and_folders_with_the_ids_of_topics() -> None:
    assert options_of(Source("data", "kafka_log", {"subscribe": "a"}, False), CLUSTER) == {
        "subscribe": "a",
        "kafka.isolation.level": "read_committed",
        "columns": "key,value,topic,partition,offset,timestamp,timestampType,headers,topic_id",
    }
    assert options_of(Source("a", "kafka", {}, False), CLUSTER) == {
        "kafka.bootstrap.servers": "here:9092",
        "subscribe": "a",
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
    }
    assert options_of(Source("lake/raw", "delta", {}, False), CLUSTER) == {}


def test_options_that_are_given_win_in_any_case_of_letters() -> None:
    given = {"Kafka.Isolation.Level": "read_uncommitted", "COLUMNS": "offset"}
    assert options_of(Source("data", "kafka_log", given, False), CLUSTER) == given


def test_brokers_that_are_away_are_a_sentence_before_anything_starts(broker: str) -> None:
    nowhere = unused_address()
    for formats in (["--format", "kafka"], ["--format", "delta"], ["--format", "kafka_log"]):
        result = run_command("spark", "replay", "a", "--to", "b", "-b", nowhere, *formats)
        assert (result.status, result.out) == (1, "")
        assert result.err.startswith(f"Error: Cannot connect to {nowhere}: Connection refused")
    elsewhere = f"kafka.bootstrap.servers={nowhere}"
    result = run_command(
        "spark", "replay", "a", "--format", "kafka", "--option", elsewhere, "--to", "b", "-b", broker
    )
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith(f"Error: Cannot connect to {nowhere}: Connection refused")


def test_a_topic_that_is_not_there_is_named_with_one_that_may_be_meant(run: Run) -> None:
    run("topics", "create", "orders")
    result = run("spark", "replay", "order", "--format", "kafka", "--to", "again")
    assert result.status == 1
    assert result.err.startswith("Error: Topic 'order' does not exist.")
    assert "'orders'" in result.err


def test_all_there_already_is_not_said_like_records_that_were_written() -> None:
    written = (Written("again", 0, 3, 30, 0, 0, 1, 3),)
    assert total_of(Replayed(written, (), 2.0, 5), "raw") == "3 records replayed in 2.0 s, 2 records/s."
    assert (
        total_of(Replayed((), (), 2.0, 5), "raw")
        == "5 records of the source in the window, all there already."
    )


def test_a_replay_that_chose_nothing_fails() -> None:
    with pytest.raises(SparkError, match=r"^No record of lake/raw is chosen, so nothing was replayed: "):
        total_of(Replayed((), (), 2.0, 0), "lake/raw")
