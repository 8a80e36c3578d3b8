"""What is said of the batches of an archive job."""

from __future__ import annotations

from pykafka_broker.spark.archive.progress import Archived, Batch, batch_of, ends_of

#: As Spark 4.0 tells of a batch.
TOLD = {
    "batchId": 3,
    "batchDuration": 2000,
    "numInputRows": 100,
    "sources": [
        {
            "description": "KafkaV2[Subscribe[orders]]",
            "startOffset": {"orders": {"0": 40, "1": 10}},
            "endOffset": {"orders": {"0": 90, "1": 60}},
        }
    ],
    "observedMetrics": {"archive": {"bytes": 5000}},
}


def test_a_batch_tells_its_records_its_bytes_and_how_far_behind_it_is() -> None:
    assert ends_of(TOLD) == {("orders", 0): 90, ("orders", 1): 60}
    batch = batch_of(TOLD, ("archive", "bytes"), {("orders", 0): 100, ("orders", 1): 60})
    assert batch == Batch(3, records=100, bytes=5000, seconds=2.0, lag=10)
    assert (batch.records_per_s, batch.bytes_per_s) == (50.0, 2500.0)


def test_the_lag_is_not_known_where_the_brokers_do_not_say() -> None:
    assert batch_of(TOLD, ("archive", "bytes"), None).lag is None


def test_batches_add_up() -> None:
    batch = batch_of(TOLD, ("archive", "bytes"), None)
    assert Archived().plus(batch).plus(batch) == Archived(batches=2, records=200, bytes=10000)
