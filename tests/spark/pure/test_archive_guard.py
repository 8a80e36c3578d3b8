"""When an archive job starts, where it begins, and why it does not."""

from __future__ import annotations

import pytest

from pykafka_broker.spark.archive.guard import (
    Archive,
    Place,
    Progress,
    committed,
    refuse_changed,
    refuse_missing,
    refuse_to_go_on,
    starting_offsets,
)
from pykafka_broker.spark.archive.settings import Start
from pykafka_broker.spark.checkpoint.topics import Range, Topic
from pykafka_broker.spark.errors import SparkError

ORDERS = Topic("id-of-orders", {0: Range(0, 100), 1: Range(0, 50)})
TOPICS = {"orders": ORDERS}
#: A job that has read all but the last ten of each partition.
GOES_ON = Progress(
    "ck",
    positions={0: {("orders", 0): 90, ("orders", 1): 40}},
    planned_ends={0: {("orders", 0): 90, ("orders", 1): 40}},
    topic_ids={"orders": "id-of-orders"},
    archive_id="table-1",
)
EMPTY = Archive("lake", "table-1", {})


def archive(**ends: int) -> Archive:
    """A table with records of orders up to before these offsets: `p0=90`."""
    return EMPTY._replace(
        ends={Place("orders", "id-of-orders", int(name[1:])): end for name, end in ends.items()}
    )


def refusal(progress: Progress, topics: dict[str, Topic] = TOPICS, table: Archive | None = EMPTY) -> str:
    with pytest.raises(SparkError) as refused:
        refuse_to_go_on(progress, topics, table)
    return str(refused.value)


# -- a checkpoint that has read something
# ---------------------------------------


def test_a_job_goes_on_whose_checkpoint_topics_and_table_belong_together() -> None:
    refuse_to_go_on(GOES_ON, TOPICS, archive(p0=90, p1=40))


def test_a_batch_that_is_in_the_table_and_not_yet_done_is_run_again_and_passed_over_by_the_sink() -> None:
    planned = GOES_ON._replace(planned_ends={0: {("orders", 0): 95, ("orders", 1): 40}})
    refuse_to_go_on(planned, TOPICS, archive(p0=95))


def test_a_new_partition_and_a_new_topic_are_read_from_their_beginning() -> None:
    grown = ORDERS._replace(partitions={**ORDERS.partitions, 2: Range(0, 5)})
    refuse_to_go_on(GOES_ON, {"orders": grown, "users": Topic("id-of-users", {0: Range(0, 9)})}, EMPTY)


def test_records_that_retention_removed_before_they_were_archived_stop_it() -> None:
    trimmed = ORDERS._replace(partitions={0: Range(95, 100), 1: Range(0, 50)})
    assert refusal(GOES_ON, {"orders": trimmed}) == (
        "orders-0: offsets 90 to 94 were removed before they were archived. See how the job can go on:\n"
        "  pykafka-broker spark checkpoint repair ck"
    )


def test_a_topic_that_was_created_anew_stops_it_even_if_its_offsets_fit() -> None:
    assert refusal(GOES_ON, {"orders": ORDERS._replace(topic_id="another")}) == (
        "orders-0: the topic was deleted and created anew since the job has read it. So it is with 1 more. "
        "See how the job can go on:\n  pykafka-broker spark checkpoint repair ck"
    )


def test_before_its_first_batch_the_way_on_is_a_new_checkpoint() -> None:
    begun = GOES_ON._replace(planned_ends={})
    assert refusal(begun, {"orders": ORDERS._replace(topic_id="another")}).endswith(
        "It has not archived anything yet: delete the checkpoint ck, and start it again."
    )


def test_another_table_under_the_same_name_stops_it() -> None:
    expected = (
        "The table that the checkpoint ck belongs to {}: what the job has read is not in it. Give a new "
        "checkpoint to fill a table anew."
    )
    assert refusal(GOES_ON, table=EMPTY._replace(archive_id="table-2")) == expected.format("is not the one")
    assert refusal(GOES_ON, table=None) == expected.format("is not there any more")


def test_a_checkpoint_of_another_kind_of_query_is_refused() -> None:
    assert refusal(GOES_ON._replace(archive_id=None)) == (
        "The checkpoint ck is not one of an archive job: give the job one of its own."
    )


def test_a_checkpoint_from_a_backup_that_is_older_than_the_table_is_refused() -> None:
    assert refusal(GOES_ON, table=archive(p0=91)) == (
        "The checkpoint ck is older than the table: it ends at offset 90 of orders-0, and lake at offset 91. "
        "New batches would have numbers that the table knows, and would be lost. Start with a new "
        "checkpoint, and the start `behind-table`."
    )


def test_a_topic_that_another_job_archives_already_is_refused() -> None:
    users = Place("users", "id-of-users", 0)
    topics = {**TOPICS, "users": Topic("id-of-users", {0: Range(0, 9)})}
    assert refusal(GOES_ON, topics, EMPTY._replace(ends={users: 9})) == (
        "Table lake has records of users-0 already, which another job put there. Let that job go on."
    )


def test_a_checkpoint_that_reads_more_topics_than_are_named_is_refused() -> None:
    assert refusal(GOES_ON, {"users": Topic("id-of-users", {0: Range(0, 9)})}) == (
        "The checkpoint ck also reads topic 'orders'. Name it too, if it exists; give another set of topics "
        "a checkpoint of its own."
    )


# -- a new checkpoint
# -------------------


def start_refusal(start: Start, topics: dict[str, Topic], table: Archive) -> str:
    with pytest.raises(SparkError) as refused:
        starting_offsets(start, topics, table)
    return str(refused.value)


def test_a_new_job_begins_where_it_is_told() -> None:
    assert starting_offsets(Start.EARLIEST, TOPICS, None) == "earliest"
    assert starting_offsets(Start.LATEST, TOPICS, EMPTY) == "latest"


def test_a_table_with_records_of_the_topic_is_not_filled_a_second_time() -> None:
    assert start_refusal(Start.EARLIEST, TOPICS, archive(p1=7)) == (
        "Table lake has records of orders-1 up to offset 6 already, and the checkpoint is new: they would be "
        "there twice. If the old checkpoint is lost, go on behind them with the start `behind-table`."
    )


def test_records_of_an_older_topic_of_the_same_name_do_not_count() -> None:
    older = EMPTY._replace(ends={Place("orders", "its-id-before", 0): 1000})
    assert starting_offsets(Start.EARLIEST, TOPICS, older) == "earliest"


def test_a_lost_checkpoint_is_made_up_for_by_the_table() -> None:
    assert starting_offsets(Start.BEHIND_TABLE, TOPICS, archive(p0=90)) == '{"orders":{"0":90,"1":0}}'


def test_behind_the_table_a_gap_is_only_accepted_when_that_is_asked_for() -> None:
    topics = {"orders": Topic("id-of-orders", {0: Range(95, 100)})}
    assert start_refusal(Start.BEHIND_TABLE, topics, archive(p0=90)) == (
        "orders-0: offsets 90 to 94 are not in the table, and gone from the topic. To go on without them, "
        "use the start `behind-table-with-gaps`."
    )
    assert starting_offsets(Start.BEHIND_TABLE_WITH_GAPS, topics, archive(p0=90)) == '{"orders":{"0":95}}'


def test_a_topic_that_has_lost_its_end_is_refused() -> None:
    assert start_refusal(Start.BEHIND_TABLE, TOPICS, archive(p1=51)) == (
        "The table has orders-1 up to offset 50, and the topic ends at offset 50: it has lost its end, and "
        "its next records would have offsets of others."
    )


def test_a_folder_of_parquet_goes_with_one_checkpoint() -> None:
    for start in Start:
        assert start_refusal(start, TOPICS, EMPTY._replace(is_of_one_checkpoint=True)) == (
            "lake has batches already, and the checkpoint is new: a folder of Parquet goes with the "
            "checkpoint that it was begun with. Give that, or another folder."
        )


# -- topics
# ---------


def test_a_topic_that_does_not_exist_is_named() -> None:
    refuse_missing(["orders"], TOPICS)
    with pytest.raises(SparkError, match="Topic 'users' does not exist"):
        refuse_missing(["users", "orders"], TOPICS)


def test_a_running_job_stops_when_its_topic_is_another_one() -> None:
    ids, verified = {"orders": "a", "users": "b"}, {("orders", 1): 7, ("orders", 0): 5, ("users", 0): 1}
    refuse_changed(ids, {"users": "b", "orders": "a"}, verified)
    with pytest.raises(SparkError) as deleted:
        refuse_changed(ids, {"users": "b"}, verified)
    assert str(deleted.value) == "Topic 'orders' was deleted while it was archived."
    with pytest.raises(SparkError) as changed:
        refuse_changed(ids, {"orders": "c", "users": "b"}, verified)
    assert str(changed.value) == (
        "Topic 'orders' was deleted and created anew while it was archived. Rows under its old id (a) may be "
        "of the new topic: orders-0 from offset 5 on, orders-1 from offset 7 on."
    )


# -- what the table is to have
# ----------------------------


def not_told(progress: Progress, topic: str = "orders", topic_id: str = "id-of-orders") -> str:
    with pytest.raises(SparkError) as refused:
        committed(progress, topic, topic_id, EMPTY)
    return str(refused.value)


def test_a_table_is_to_have_all_from_where_its_job_began_to_the_end_of_the_last_batch_that_is_done() -> None:
    began = GOES_ON._replace(beginning={("orders", 0): 60}, planned_ends={0: {("orders", 0): 95}})
    assert committed(began, "orders", "id-of-orders", EMPTY) == {0: (60, 90), 1: (0, 40)}
    idle = GOES_ON._replace(beginning={("orders", 0): 90, ("orders", 1): 40})
    assert committed(idle, "orders", "", EMPTY) == {0: (90, 90), 1: (40, 40)}


def test_after_a_repair_the_beginning_of_the_old_topic_means_nothing() -> None:
    repaired = GOES_ON._replace(beginning={("orders", 0): 500})
    assert committed(repaired, "orders", "id-of-orders", EMPTY)[0] == (90, 90)


def test_the_checkpoint_of_another_job_tells_nothing_of_this_table() -> None:
    assert not_told(GOES_ON._replace(archive_id="table-2")) == (
        "The checkpoint ck is not one of the job that fills lake."
    )
    assert not_told(GOES_ON._replace(archive_id=None)) == not_told(GOES_ON._replace(archive_id="table-2"))
    assert not_told(GOES_ON, "users") == "The checkpoint ck is of a job that does not archive topic 'users'."
    assert not_told(GOES_ON, topic_id="another") == (
        "Topic 'orders' was deleted and created anew since the job of the checkpoint ck has read it (its id "
        "is another, and was id-of-orders): nothing of the new topic is archived."
    )
