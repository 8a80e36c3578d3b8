"""Options that Spark's Kafka source ignores are named."""

from __future__ import annotations

from pykafka_broker.doctor.findings import warning
from pykafka_broker.spark.doctor import Question, examine
from pykafka_broker.spark.doctor.source_options import about_source_options

IGNORED = "Spark's Kafka source has no such option, and ignores it."


def test_a_misspelt_option_is_named_with_the_one_that_was_meant() -> None:
    assert list(about_source_options(["startingOfsets"])) == [
        warning("options", "startingOfsets", IGNORED, "Did you mean startingOffsets?")
    ]


def test_options_of_the_source_and_of_the_consumer_are_taken_in_any_case() -> None:
    assert list(about_source_options(["STARTINGOFFSETS", "kafka.fetch.max.bytes", "includeheaders"])) == []


def test_the_doctor_looks_at_options_before_any_broker_answers() -> None:
    question = Question("127.0.0.1:1", options={"startingOfsets": "latest"}, master=None, timeout_s=1)
    assert warning("options", "startingOfsets", IGNORED, "Did you mean startingOffsets?") in examine(question)
