"""Loggers as configuration (KIP-412): levels shown by DescribeConfigs and set by IncrementalAlterConfigs.

Levels belong to the running process and are lost at a restart. Python's level WARNING is Kafka's WARN, and a
level below DEBUG counts as TRACE.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from pykafka_broker.controller.core.events import ConfigOperation
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.java_hash import string_hash, walked

ROOT = "root"
TRACE = 5
LEVELS = {
    "TRACE": TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


def logger_levels() -> dict[str, str]:
    """Every logger's effective level by its name, in the order of Apache Kafka's hash map, because some
    clients read the entries of DescribeConfigs by position.
    """
    found = logging.root.manager.loggerDict.items()
    names = [name for name, each in found if isinstance(each, logging.Logger)]
    return {
        name: _level_name(logging.root if name == ROOT else logging.getLogger(name))
        for name in walked([*sorted(names), ROOT], string_hash)
    }


def alter_loggers(
    changes: Iterable[tuple[str, int, str | None]],
    *,
    tell: Callable[[str], None],
    validate_only: bool = False,
) -> None:
    """Set or unset levels, all or none; `tell` logs each change.

    Raises:
        KafkaError: INVALID_CONFIG for an unknown logger or level, INVALID_REQUEST for an operation that makes
        no sense for a level.
    """
    known = logger_levels()
    accepted: list[tuple[str, int, str]] = []
    for name, operation, value in changes:
        if name not in known:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
        if operation == ConfigOperation.SET:
            if value not in LEVELS:
                raise KafkaError(
                    ErrorCode.INVALID_CONFIG,
                    f"Cannot set the log level of {name} to {value} as it is not a supported log level. "
                    f"Valid log levels are {', '.join(sorted(LEVELS))}",
                )
            accepted.append((name, LEVELS[value], f"Updated the log level of {name} to {value}"))
        elif operation == ConfigOperation.DELETE:
            if name == ROOT:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, f"Removing the log level of the {ROOT} logger is not allowed"
                )
            accepted.append((name, logging.NOTSET, f"Unset the log level of {name}"))
        else:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{ConfigOperation(operation).name} operation is not allowed for the BROKER_LOGGER resource",
            )
    if not validate_only:
        for name, level, text in accepted:
            # Logged first: after the change the logger may no longer write this line, which names the client.
            tell(text)
            (logging.root if name == ROOT else logging.getLogger(name)).setLevel(level)


def _level_name(logger: logging.Logger) -> str:
    level = logger.getEffectiveLevel()
    return next((name for name, number in LEVELS.items() if level <= number), "FATAL")
