"""Offsets that should be there and are not. A read stops with a sentence, unless failOnDataLoss=false says to
go on without them.
"""

from __future__ import annotations

import logging

from pykafka_broker.spark.errors import SparkError

_LOG = logging.getLogger(__name__)

HOW_TO_GO_ON = "Set failOnDataLoss=false to go on without them."


def report_loss(what: str, *, is_error: bool) -> None:
    """Say that records are missing.

    Raises:
        SparkError: `is_error`, with how to go on.
    """
    if is_error:
        raise SparkError(f"{what} {HOW_TO_GO_ON}")
    _LOG.warning("%s failOnDataLoss=false: going on without them.", what)
