"""The APIs of Apache Kafka's broker listener that this broker does not serve yet, by the feature they need.

Each API of Kafka 4.3 is either in `APIS` or in this list.
"""

from __future__ import annotations

NOT_YET_SERVED: dict[str, tuple[str, ...]] = {
    # It has no API of its own; the key `remote.log.storage.system.enable` is refused.
    "tiered storage": (),
}
