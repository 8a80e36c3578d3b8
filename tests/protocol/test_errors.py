"""The error codes and the exceptions that carry them."""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode, KafkaError


def test_the_codes_run_without_a_gap_as_in_kafka_4_3() -> None:
    assert [int(code) for code in ErrorCode] == list(range(-1, 134))
    assert ErrorCode(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ErrorCode(133) is ErrorCode.SHARE_SESSION_LIMIT_REACHED


def test_every_error_says_what_it_means() -> None:
    assert [code for code in ErrorCode if not code.message] == [ErrorCode.NONE]


def test_an_error_has_its_codes_message_unless_it_knows_better() -> None:
    plain = KafkaError(ErrorCode.NOT_COORDINATOR)
    precise = KafkaError(ErrorCode.INVALID_CONFIG, "retention.ms must not be negative")

    assert (plain.code, plain.message) == (16, "This is not the correct coordinator.")
    assert str(plain) == "NOT_COORDINATOR: This is not the correct coordinator."
    assert (precise.code, precise.message) == (40, "retention.ms must not be negative")
