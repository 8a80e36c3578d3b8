"""The findings of a check: a sentence about the subject and, where something is wrong, the remedy."""

from __future__ import annotations

from enum import StrEnum

from pykafka_broker.system.named_tuple import NamedTuple


class Level(StrEnum):
    """The severity of a finding."""

    #: As it should be.
    OK = "ok"
    #: Works, but not for all clients, or not for long.
    WARNING = "warning"
    #: Clients fail or wait because of it.
    PROBLEM = "problem"
    #: Not checked, because of the finding of an earlier check.
    SKIPPED = "skipped"


class Finding(NamedTuple):
    """One result of one check."""

    level: Level
    #: The check, such as `topics`.
    check: str
    #: The subject of the check: an address, a topic, a group, a directory.
    subject: str
    message: str
    #: The remedy, "" where nothing is wrong. Commands stand on lines of their own.
    remedy: str = ""


def ok(check: str, subject: str, message: str) -> Finding:
    return Finding(Level.OK, check, subject, message)


def warning(check: str, subject: str, message: str, remedy: str) -> Finding:
    return Finding(Level.WARNING, check, subject, message, remedy)


def problem(check: str, subject: str, message: str, remedy: str) -> Finding:
    return Finding(Level.PROBLEM, check, subject, message, remedy)


def skipped(check: str, message: str) -> Finding:
    return Finding(Level.SKIPPED, check, "", message)
