"""Checkpoints: read, compared with topics, and repaired."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from pykafka_broker.spark.checkpoint.comparison import (
    Question,
    Standing,
    State,
    Whither,
    compare,
    needs_repair,
)
from pykafka_broker.spark.checkpoint.files import (
    Offsets,
    kafka_offsets,
    offsets_line,
    read_checkpoint,
    read_topic_ids,
    write_topic_ids,
)
from pykafka_broker.spark.checkpoint.repair import carry_out, plan
from pykafka_broker.spark.checkpoint.topics import Range, Topic, topic_ids
from pykafka_broker.spark.errors import SparkError
from tests.support.checkpoints import PLANNED_MS, QUERY_ID, make_checkpoint

if TYPE_CHECKING:
    from pykafka_broker.client.blocking import Client

T0, T1 = ("t", 0), ("t", 1)
NOTHING = Question({}, {}, {})


# --- reading


def test_a_source_of_kafka_is_told_from_others_by_its_line() -> None:
    assert kafka_offsets('{"t":{"1":7,"0":5},"u":{"0":0}}') == {T0: 5, T1: 7, ("u", 0): 0}
    for other in ("-", "12", '{"logOffset":3}', '{"t":{"shard":5}}', '{"t":{"0":true}}', "{}", "", "no JSON"):
        assert kafka_offsets(other) is None
    assert offsets_line({T1: 7, T0: 5}) == '{"t":{"0":5,"1":7}}'


def test_a_query_reads_on_where_its_last_batch_ends(tmp_path: Path) -> None:
    found = read_checkpoint(make_checkpoint(tmp_path / "c", [{T0: 3}, {T0: 5}]))
    assert (found.query_id, found.last.number, found.last.planned_ms) == (QUERY_ID, 1, PLANNED_MS)
    assert found.positions() == {0: {T0: 5}}
    assert found.planned_ends() == {}


def test_a_batch_that_is_not_done_is_read_again(tmp_path: Path) -> None:
    found = read_checkpoint(make_checkpoint(tmp_path / "c", [{T0: 3}, {T0: 5}], done=1))
    assert found.positions() == {0: {T0: 3}}
    assert found.planned_ends() == {0: {T0: 5}}


def test_a_query_whose_first_batch_is_not_done_has_read_nothing(tmp_path: Path) -> None:
    found = read_checkpoint(make_checkpoint(tmp_path / "c", [{T0: 3}], done=0))
    with pytest.raises(SparkError, match=r"No batch of .* is done: nothing is lost if you delete"):
        found.positions()


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SparkError, match="is no checkpoint of a streaming query"):
        read_checkpoint(tmp_path)
    empty = make_checkpoint(tmp_path / "empty", [])
    with pytest.raises(SparkError, match="has no batch yet"):
        read_checkpoint(empty)
    other = make_checkpoint(tmp_path / "other", [{T0: 3}])
    (other / "offsets" / "0").write_text("v9\n{}\n{}")
    with pytest.raises(
        SparkError, match="begins with 'v9': of the forms of Spark's offset files, v1 is known"
    ):
        read_checkpoint(other)


def test_ids_of_topics_are_remembered(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "c", [{T0: 3}])
    assert read_topic_ids(folder) == {}
    write_topic_ids(folder, {"t": "id"})
    assert read_checkpoint(folder).topic_ids == {"t": "id"}


def test_a_topic_that_may_not_be_looked_at_has_no_other_id() -> None:
    class Brokers:
        def metadata(self, names: list[str]) -> MetadataResponse:
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            topics = [MetadataResponseTopic(error_code=code, name=name, partitions=[]) for name in names]
            return MetadataResponse(brokers=[], topics=topics)

    with pytest.raises(KafkaError, match="Topic 'orders': Topic authorization failed"):
        topic_ids(cast("Client", Brokers()), ["orders"])


# --- comparing


def standing(position: int | None, log: Range | None, question: Question = NOTHING) -> State:
    """The state of t-0."""
    offsets: Offsets = {T1: 0} if position is None else {T0: position}
    partitions = {1: Range(0, 0)} if log is None else {0: log, 1: Range(0, 0)}
    states = compare({0: offsets}, {"t": Topic("new", partitions)}, question)
    [found] = [state for state in states if state.partition == 0]
    return found


@pytest.mark.parametrize(
    ("position", "log", "expected"),
    [
        (5, Range(2, 9), State(0, "t", 0, Standing.FITS, 5, 2, 9, 5, 0, 0)),
        (9, Range(2, 9), State(0, "t", 0, Standing.FITS, 9, 2, 9, 9, 0, 0)),
        (None, Range(0, 9), State(0, "t", 0, Standing.NEW, None, 0, 9, 0, 0, 0)),
        (None, Range(3, 9), State(0, "t", 0, Standing.NEW_AND_TRIMMED, None, 3, 9, 3, 0, 0)),
        (1, Range(3, 9), State(0, "t", 0, Standing.OVERTAKEN, 1, 3, 9, 3, 2, 0)),
        (10, Range(3, 9), State(0, "t", 0, Standing.BEYOND_END, 10, 3, 9, 3, 0, 6)),
        (10, None, State(0, "t", 0, Standing.MISSING, 10, None, None, None, 0, 0)),
    ],
)
def test_a_position_and_a_log_stand_in_one_way(
    position: int | None, log: Range | None, expected: State
) -> None:
    found = standing(position, log)
    assert found == expected
    assert needs_repair([found]) == (expected.standing not in (Standing.FITS, Standing.NEW))


def test_a_topic_that_does_not_exist_is_missing() -> None:
    assert compare({0: {T0: 4}}, {}, NOTHING) == [
        State(0, "t", 0, Standing.MISSING, 4, None, None, None, 0, 0)
    ]


def test_lost_positions_go_on_at_the_end_if_that_is_asked_for() -> None:
    found = standing(10, Range(3, 9), NOTHING._replace(whither=Whither.LATEST))
    assert (found.repaired, found.skipped, found.read_again) == (9, 6, 0)


def test_another_id_than_the_remembered_one_is_another_topic_although_the_offsets_fit() -> None:
    for question in (NOTHING._replace(topic_ids={"t": "old"}), NOTHING._replace(recreated=["t"])):
        found = standing(5, Range(0, 9), question)
        assert found == State(0, "t", 0, Standing.RECREATED, 5, 0, 9, 0, 0, 9)
    assert standing(5, Range(0, 9), NOTHING._replace(topic_ids={"t": "new"})).standing is Standing.FITS


def test_records_before_the_position_that_are_younger_than_its_batch_are_doubtful() -> None:
    found = standing(5, Range(0, 9), NOTHING._replace(first_since={T0: 0}))
    assert (found.standing, needs_repair([found])) == (Standing.DOUBTFUL, False)
    assert standing(5, Range(0, 9), NOTHING._replace(first_since={T0: 5})).standing is Standing.FITS


def test_a_planned_batch_that_ends_beyond_the_log_does_not_fit() -> None:
    found = standing(0, Range(0, 9), NOTHING._replace(planned_ends={0: {T0: 100}}))
    assert (found.standing, found.repaired) == (Standing.BEYOND_END, 0)


# --- repairing


def repaired(folder: Path, topics: dict[str, Topic], whither: Whither = Whither.EARLIEST) -> list[str]:
    """The lines of offsets that a repair writes, and it is written."""
    found = read_checkpoint(folder)
    states = compare(found.positions(), topics, Question(found.planned_ends(), {}, {}, (), whither))
    rewrites = plan(found, states)
    carry_out(rewrites)
    return [rewrite.path.read_text().split("\n")[2] for rewrite in rewrites]


def test_a_sound_checkpoint_is_left_alone(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "c", [{T0: 5}])
    assert repaired(folder, {"t": Topic("", {0: Range(0, 9), 1: Range(0, 0)})}) == []


def test_the_next_batch_begins_where_the_topic_does(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "c", [{T0: 1}, {T0: 3, T1: 4, ("gone", 0): 1}])
    before = (folder / "offsets" / "1").read_text()
    topics = {"t": Topic("", {0: Range(7, 9), 1: Range(0, 4)})}
    assert repaired(folder, topics) == ['{"t":{"0":7,"1":4}}']
    assert sorted(path.name for path in (folder / "offsets").iterdir()) == [
        ".0.crc",
        "0",
        "1",
        "1.before-repair-1",
    ]
    assert (folder / "offsets" / "1.before-repair-1").read_text() == before
    assert (folder / "offsets" / "1").read_text().split("\n")[:2] == before.split("\n")[:2]

    assert repaired(folder, {"t": Topic("", {0: Range(8, 9), 1: Range(0, 4)})}) == ['{"t":{"0":8,"1":4}}']
    assert (folder / "offsets" / "1.before-repair-2").exists()


def test_a_batch_that_was_planned_keeps_what_it_can_still_read(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "c", [{T0: 1, T1: 4}, {T0: 9, T1: 6}], done=1)
    lines = repaired(folder, {"t": Topic("", {0: Range(7, 20), 1: Range(0, 8)})})
    assert lines == ['{"t":{"0":7,"1":4}}', '{"t":{"0":9,"1":6}}']


def test_a_batch_that_was_planned_on_another_topic_is_left_empty(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "c", [{T0: 50}, {T0: 100}], done=1)
    topics = {"t": Topic("", {0: Range(0, 9)})}
    assert repaired(folder, topics) == ['{"t":{"0":0}}', '{"t":{"0":0}}']


def test_a_source_that_is_not_of_kafka_keeps_its_line(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "c", [{T0: 1}])
    path = folder / "offsets" / "0"
    version, settings, kafka = path.read_text().split("\n")
    path.write_text("\n".join([version, settings, "-", '{"logOffset":3}', kafka]))
    repaired(folder, {"t": Topic("", {0: Range(7, 9)})})
    assert path.read_text().split("\n")[2:] == ["-", '{"logOffset":3}', '{"t":{"0":7}}']
