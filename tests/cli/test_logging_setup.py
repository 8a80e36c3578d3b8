"""Log lines in Kafka's format, at the levels its container image's variables ask for."""

from __future__ import annotations

import datetime as dt
import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from pykafka_broker.cli.logging_setup import TRACE, logs_objects, set_up_logging


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    for name in ("kafka.test", "kafka.other", "asyncio"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def log_to_text(environ: dict[str, str], log_format: str = "text") -> io.StringIO:
    stream = io.StringIO()
    set_up_logging(environ, stream, log_format)
    return stream


def objects(stream: io.StringIO) -> list[dict[str, str]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_has_kafkas_form() -> None:
    stream = log_to_text({})
    logging.getLogger("kafka.test").info("message %d", 1)
    assert re.fullmatch(
        r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] INFO message 1 \(kafka\.test\)\n", stream.getvalue()
    )


@pytest.mark.parametrize(
    ("level", "name"),
    [
        (TRACE, "TRACE"),
        (logging.DEBUG, "DEBUG"),
        (logging.WARNING, "WARN"),
        (logging.ERROR, "ERROR"),
        (logging.CRITICAL, "FATAL"),
    ],
)
def test_levels_have_kafkas_names(level: int, name: str) -> None:
    stream = log_to_text({"KAFKA_LOG4J_ROOT_LOGLEVEL": "ALL"})
    logging.getLogger("kafka.test").log(level, "x")
    assert f"] {name} x (" in stream.getvalue()


def test_the_root_level_is_info_unless_said_otherwise() -> None:
    stream = log_to_text({})
    logging.getLogger("kafka.test").debug("x")
    assert stream.getvalue() == ""
    stream = log_to_text({"KAFKA_LOG4J_ROOT_LOGLEVEL": "warn"})
    logging.getLogger("kafka.test").info("x")
    assert stream.getvalue() == ""


def test_single_loggers_have_levels_of_their_own() -> None:
    stream = log_to_text({"KAFKA_LOG4J_LOGGERS": "kafka.test=DEBUG, kafka.other=ERROR"})
    logging.getLogger("kafka.test").debug("seen")
    logging.getLogger("kafka.other").warning("not seen")
    assert [line.split()[3] for line in stream.getvalue().splitlines()] == ["seen"]


def test_a_traceback_stands_below_its_line() -> None:
    stream = log_to_text({})
    try:
        raise RuntimeError("broken")
    except RuntimeError:
        logging.getLogger("kafka.test").exception("failed")
    first, second, *_, last = stream.getvalue().splitlines()
    assert first.endswith("ERROR failed (kafka.test)")
    assert second == "Traceback (most recent call last):"
    assert last == "RuntimeError: broken"


def test_no_line_of_a_traceback_looks_like_a_message() -> None:
    stream = log_to_text({})
    try:
        raise RuntimeError("no topic x\n[2026-01-01 00:00:00,000] INFO Granted everything\r\x1b[2K (kafka.x)")
    except RuntimeError:
        logging.getLogger("kafka.test").exception("failed")
    *_, before, last = stream.getvalue().split("\n")[:-1]
    assert before == "RuntimeError: no topic x"
    assert last == r" [2026-01-01 00:00:00,000] INFO Granted everything\r\x1b[2K (kafka.x)"


def test_an_unknown_level_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="'LOUD' is not a log level; use one of OFF, FATAL, ERROR"):
        set_up_logging({"KAFKA_LOG4J_ROOT_LOGLEVEL": "LOUD"}, io.StringIO())


def test_a_json_line_says_when_how_grave_who_and_what() -> None:
    stream = log_to_text({}, "json")
    logging.getLogger("kafka.test").warning("%s\nin two lines: \u00e9 \udcff", "message")
    (told,) = objects(stream)
    moment = dt.datetime.fromisoformat(told.pop("time"))
    assert abs(dt.datetime.now(dt.UTC) - moment) < dt.timedelta(minutes=1)
    assert told == {
        "level": "WARN",
        "logger": "kafka.test",
        "message": "message\nin two lines: \u00e9 \udcff",
    }


def test_a_traceback_is_a_field_of_its_json_line() -> None:
    stream = log_to_text({}, "json")
    try:
        raise RuntimeError("broken")
    except RuntimeError:
        logging.getLogger("kafka.test").exception("failed")
    logging.getLogger("kafka.test").info("here", stack_info=True)
    failed, here = objects(stream)
    assert (failed["level"], failed["message"]) == ("ERROR", "failed")
    assert failed["exception"].splitlines()[0] == "Traceback (most recent call last):"
    assert failed["exception"].splitlines()[-1] == "RuntimeError: broken"
    assert here["exception"].startswith("Stack (most recent call last):")


def test_what_is_not_for_the_log_can_ask_for_its_form() -> None:
    log_to_text({}, "json")
    assert logs_objects()
    log_to_text({})
    assert not logs_objects()
