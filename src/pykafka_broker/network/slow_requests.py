"""The log of slow requests: one line for each whose time exceeds `log.slow.requests.ms`, with its stages.

Of the time that a request waits for its answer, what the client asked for does not count
(`asked_wait_ms` in `unanswered.py`). There are at most `MOST_LINES` lines in a second; the next line says how
many were left out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from pykafka_broker.network.answers import request_logger
from pykafka_broker.network.request_times import NS_PER_MS, Answered
from pykafka_broker.network.unanswered import quoted
from pykafka_broker.system.repeated_lines import RepeatedLines

#: The most lines in a second.
MOST_LINES = 10


class SlowRequests:
    """Logs the requests that take longer than `limit_ms`."""

    def __init__(self, limit_ms: int, now_ms: Callable[[], int]) -> None:
        self._limit_ns = limit_ms * NS_PER_MS
        self._lines = RepeatedLines(
            request_logger,
            now_ms,
            1_000,
            most_lines=MOST_LINES,
            left_out="%d more requests were slow, which are not logged one by one",
        )

    def answered(self, request: Answered) -> None:
        """A request has been answered."""
        if request.unasked_ns > self._limit_ns:
            context = request.context
            subject = f"{context.connection!r} {context.correlation_id} {request.began_ns}"
            self._lines.log(logging.WARNING, "slow", subject, partial(_line, request), None, request)


def _line(request: Answered) -> str:
    asked = f", of which the client asked to wait {request.asked_wait_ms} ms" if request.asked_wait_ms else ""
    fields = request.log_fields
    stages = ", ".join(f"{name} {milliseconds}" for name, milliseconds in request.stages_ms.items())
    return (
        f"Slow request: {fields['api']} v{fields['api_version']} with correlation id "
        f"{fields['correlation_id']} of client {quoted(request.context.client_id)} as "
        f"{quoted(request.context.principal)} on {request.context.connection!r} ({stages}){asked}"
    )
