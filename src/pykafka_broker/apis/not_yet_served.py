"""The APIs of Apache Kafka's broker listener that this broker does not serve yet, by the feature they need.

Beside `APIS`, so that each API of Kafka is in one of the two lists. Kafka 4.3 is meant.
"""

from __future__ import annotations

NOT_YET_SERVED = {
    "client telemetry": ("GetTelemetrySubscriptions", "PushTelemetry"),
    # No API is for it alone: the key `remote.log.storage.system.enable` is refused.
    "tiered storage": (),
}
