"""The keys of a client metrics subscription (KIP-714)."""

from __future__ import annotations

from pykafka_broker.config.keys import (
    CLUSTER_WIDE,
    INT,
    LIST,
    MEDIUM,
    UNHEEDED,
    Key,
    ListOf,
)

# fmt: off
CLIENT_METRICS_KEYS: tuple[Key, ...] = (
    Key("metrics", LIST, (), ListOf(), MEDIUM, CLUSTER_WIDE, UNHEEDED,
        "Prefixes of the metrics that matching clients push; * is all."),
    Key("interval.ms", INT, 300000, None, MEDIUM, CLUSTER_WIDE, UNHEEDED,
        "How often matching clients push."),
    Key("match", LIST, (), ListOf(), MEDIUM, CLUSTER_WIDE, UNHEEDED,
        "Which clients push, as selector=pattern; without one, all."),
)
# fmt: on

#: Every client metrics key by name.
CLIENT_METRICS: dict[str, Key] = {key.name: key for key in CLIENT_METRICS_KEYS}
