"""Logging of a broker or console: Kafka's line format and levels, so that readers of Kafka's logs read ours.

    [2026-01-02 03:04:05,678] INFO message (logger)

or, for log collectors, one JSON object a line:

    {"time": "2026-01-02T03:04:05.678Z", "level": "INFO", "logger": "kafka.x", "message": "message"}

with the fields of the request or connection that the line is about (`system/log_fields.py`), and the
traceback in "exception", where there are some.

The standard library's logging does the work; only this module configures it, and only for the commands
`start` and `console`, so a program that embeds the broker keeps its own set-up. Levels come from the
variables of Kafka's container image: KAFKA_LOG4J_ROOT_LOGLEVEL, and KAFKA_LOG4J_LOGGERS as
`logger=LEVEL,logger=LEVEL`.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

from pykafka_broker.system.wording import printable

#: Kafka's level names; TRACE has no counterpart in Python.
TRACE = 5
LEVELS = {
    "OFF": logging.CRITICAL + 10,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "WARNING": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": TRACE,
    "ALL": 1,
}
_NAMES = {
    logging.CRITICAL: "FATAL",
    logging.ERROR: "ERROR",
    logging.WARNING: "WARN",
    logging.INFO: "INFO",
    logging.DEBUG: "DEBUG",
    TRACE: "TRACE",
}


def _level_name(record: logging.LogRecord) -> str:
    return _NAMES.get(record.levelno, record.levelname)


class KafkaFormatter(logging.Formatter):
    """`[date time,ms] LEVEL message (logger)`, in local time, a traceback below. A message is one line, even
    if it contains names with line breaks, and no line of a traceback looks like a message.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        message = printable(record.message)
        return f"[{moment},{int(record.msecs):03d}] {_level_name(record)} {message} ({record.name})"

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        # The text of an exception may have words of a client, of any number of lines.
        lines = super().formatException(ei).split("\n")
        return "\n".join(f"{' ' if line.startswith('[') else ''}{printable(line)}" for line in lines)


class JsonFormatter(logging.Formatter):
    """An object with time (UTC), level, logger and message; where there are some, with the fields of what the
    line is about, and with exception.
    """

    def format(self, record: logging.LogRecord) -> str:
        # Not needed for a log in Kafka's form.
        import json

        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        told: dict[str, object] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": _level_name(record),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "log_fields", {}),
        }
        exception = self.formatException(record.exc_info) if record.exc_info else record.exc_text
        parts = (exception, self.formatStack(record.stack_info) if record.stack_info else None)
        if any(parts):
            told["exception"] = "\n".join(filter(None, parts))
        return json.dumps(told)


#: The values of `start --log-format`.
FORMATTERS: dict[str, type[logging.Formatter]] = {"text": KafkaFormatter, "json": JsonFormatter}


def set_up_logging(
    environ: Mapping[str, str], stream: TextIO | None = None, log_format: str = "text"
) -> None:
    """Send everything to `stream` (standard output) at the levels the environment asks for.

    Raises:
        ValueError: a level is none of Kafka's.
    """
    root_level = level_of(environ.get("KAFKA_LOG4J_ROOT_LOGLEVEL") or "INFO")
    levels = _logger_levels(environ.get("KAFKA_LOG4J_LOGGERS", ""))
    handler = logging.StreamHandler(sys.stdout if stream is None else stream)
    handler.setFormatter(FORMATTERS[log_format]())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(root_level)
    # asyncio's messages about itself are for its developers.
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    for name, level in levels.items():
        logging.getLogger("" if name in ("root", "rootLogger") else name).setLevel(level)


def logs_objects() -> bool:
    """Whether the log is JSON, so that a plain line must not be mixed in."""
    return any(isinstance(handler.formatter, JsonFormatter) for handler in logging.getLogger().handlers)


def level_of(name: str) -> int:
    """The number of a level by Kafka's name.

    Raises:
        ValueError: there is no such level.
    """
    level = LEVELS.get(name.strip().upper())
    if level is None:
        raise ValueError(f"{name.strip()!r} is not a log level; use one of {', '.join(LEVELS)}")
    return level


def _logger_levels(text: str) -> dict[str, int]:
    levels = {}
    for entry in text.split(","):
        if entry.strip():
            name, _, level = entry.partition("=")
            levels[name.strip()] = level_of(level)
    return levels
