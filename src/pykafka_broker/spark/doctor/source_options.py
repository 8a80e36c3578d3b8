"""The check of the options of a source: Spark silently ignores unknown ones. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from pykafka_broker.doctor.findings import Finding, warning

#: Of `format("kafka")`; those of the consumer begin with `kafka.`.
OPTIONS = (
    *("assign", "subscribe", "subscribePattern"),
    *(
        "startingOffsets",
        "startingTimestamp",
        "startingOffsetsByTimestamp",
        "startingOffsetsByTimestampStrategy",
    ),
    *("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"),
    *("failOnDataLoss", "groupIdPrefix", "includeHeaders"),
    *("minPartitions", "maxRecordsPerPartition"),
    *("minOffsetsPerTrigger", "maxOffsetsPerTrigger", "maxTriggerDelay"),
    *("kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs"),
)
_KNOWN = {name.lower(): name for name in OPTIONS}


def about_source_options(names: Iterable[str]) -> Iterator[Finding]:
    """A warning for each option that Spark would ignore."""
    for name in names:
        if name.lower() in _KNOWN or name.lower().startswith("kafka."):
            continue
        close = get_close_matches(name.lower(), _KNOWN, 1)
        remedy = f"Did you mean {_KNOWN[close[0]]}?" if close else "Leave it out."
        yield warning("options", name, "Spark's Kafka source has no such option, and ignores it.", remedy)
