"""Where records go, how fast, and in which task."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from pykafka_broker.spark.kafka_format import KAFKA_COLUMNS
from pykafka_broker.spark.replay import Target, replay
from pykafka_broker.spark.replay.errors import ReplayError
from pykafka_broker.spark.replay.job import default_name, sentence_of, target_names
from pykafka_broker.spark.replay.pace import Pace
from pykafka_broker.spark.replay.shuffle import keys_of_tasks, spark_hash
from pykafka_broker.testing.processes import free_port

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def test_spark_hash_is_what_spark_says() -> None:
    # SELECT hash(0), hash(1), hash(2), hash(123456)
    assert [spark_hash(number) for number in (0, 1, 2)] == [933211791, -559580957, 1765031574]


@pytest.mark.parametrize("tasks", [1, 2, 3, 7, 200])
def test_each_task_gets_one_key(tasks: int) -> None:
    keys = keys_of_tasks(tasks)
    assert [spark_hash(key) % tasks for key in keys] == list(range(tasks))


def test_topics_go_where_they_are_sent() -> None:
    assert target_names({"a", "b"}, None) == {"a": "a", "b": "b"}
    assert target_names({"a"}, "again") == {"a": "again"}
    assert target_names({"a", "b"}, {"a": "x", "b": "y", "c": "z"}) == {"a": "x", "b": "y"}


def test_a_topic_without_a_place_is_refused() -> None:
    with pytest.raises(ReplayError, match="Where do records of 'b' go"):
        target_names({"a", "b"}, {"a": "x"})


def test_two_topics_do_not_go_to_one() -> None:
    with pytest.raises(ReplayError, match="'a' and 'b' cannot both go to 'x'"):
        target_names({"a", "b"}, "x")


def test_a_replay_is_named_after_its_topic_and_one_of_several_by_its_user() -> None:
    assert default_name({"a": "again"}) == "replay-to-again"
    with pytest.raises(ReplayError, match="A replay into 2 topics needs a name"):
        default_name({"a": "x", "b": "y"})


def test_the_sentence_of_a_task_is_found_in_the_trace_of_spark() -> None:
    trace = (
        "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
        '  File "writing.py", line 1, in run\n'
        "pykafka_broker.spark.replay.errors.ReplayError: orders-0 does not take it: too old\n"
        "\n\tat org.apache.spark...\n"
    )
    assert sentence_of(trace) == "orders-0 does not take it: too old"
    assert sentence_of("java.lang.OutOfMemoryError") is None


def test_a_pace_spreads_records_and_bytes() -> None:
    pace = Pace(records_per_s=10, bytes_per_s=1_000, began_s=100.0)
    assert pace.wait_s(5, 100, now_s=100.0) == 0
    assert pace.wait_s(1, 1_000, now_s=100.1) == pytest.approx(0.4)
    assert pace.wait_s(1, 1, now_s=100.6) == pytest.approx(0.9)


def test_a_pace_does_not_make_up_for_time_in_which_there_was_nothing() -> None:
    pace = Pace(records_per_s=10, bytes_per_s=None, began_s=0.0)
    assert pace.wait_s(10, 0, now_s=50.0) == 0
    assert pace.wait_s(10, 0, now_s=50.0) == 1


def test_without_a_rate_nothing_waits() -> None:
    pace = Pace(None, None, 0.0)
    assert [pace.wait_s(10**9, 10**9, now_s=float(second)) for second in range(3)] == [0, 0, 0]


class Unread:
    """A source in Spark's kafka format that must not be read yet."""

    isStreaming = False  # noqa: N815 - Spark's name
    columns = KAFKA_COLUMNS


def test_brokers_are_asked_before_the_source_is_read() -> None:
    with pytest.raises(OSError, match="Connection refused"):
        replay(cast("DataFrame", Unread()), Target(f"127.0.0.1:{free_port()}", "again"))
