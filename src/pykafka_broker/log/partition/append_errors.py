"""The answers to a producer when the disk refuses to take its records."""

from __future__ import annotations

import logging

from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.segment.segment import Segment
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger("org.apache.kafka.storage.internals.log.UnifiedLog")


def storage_error(name: str, error: OSError) -> KafkaError:
    """The answer to a producer to the log `name`."""
    return KafkaError(
        ErrorCode.KAFKA_STORAGE_ERROR,
        f"Error while appending records to {name}: {error.strerror or error}",
    )


def append_failed(environment: Environment, name: str, segment: Segment, error: OSError) -> KafkaError:
    """Cut off a half-written batch, report the error, and return the answer to the producer."""
    if segment.has_torn_tail:
        try:
            segment.cut_torn_tail()
        except OSError:
            logger.debug("cannot cut the torn tail of %s now, the next append will", segment.path)
    environment.write_failed(error)
    return storage_error(name, error)
