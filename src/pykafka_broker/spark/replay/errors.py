"""The error of a replay."""

from __future__ import annotations

from pykafka_broker.spark.errors import SparkError


class ReplayError(SparkError):
    """A replay cannot go on; the message has the reason and the remedy."""
