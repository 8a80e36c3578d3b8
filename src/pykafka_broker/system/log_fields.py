"""The fields of a log line beside its text: the request or the connection that the line is about.

A logger gets them as `extra=about(context)`. In a log of JSON objects each is a field of its object; a log in
Kafka's form shows only the text (`cli/logging_setup.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Described(Protocol):
    """What a log line may be about."""

    @property
    def log_fields(self) -> Mapping[str, object]:
        """Its fields, by their names in JSON."""
        ...


def about(subject: Described | None, **more: object) -> dict[str, object] | None:
    """The `extra` of a line about `subject`, with `more` fields. The line does not refer to `subject`, as a
    handler may keep lines for long.
    """
    return None if subject is None else {"log_fields": {**subject.log_fields, **more}}
