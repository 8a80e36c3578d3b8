"""The values of one group: its own, or else the broker's, within the broker's bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pykafka_broker.config.group import GROUP
from pykafka_broker.config.typed_values import TypedValues


def broker_keys(name: str) -> tuple[str, str, str]:
    """The broker's keys for the default, the least and the greatest value of a group's key. Any of them may
    be missing.
    """
    kind, _, rest = name.partition(".")
    greatest = "standby.replicas" if rest == "num.standby.replicas" else rest
    return f"group.{name}", f"group.{kind}.min.{rest}", f"group.{kind}.max.{greatest}"


def group_value(config: TypedValues, overrides: Mapping[str, str], name: str) -> Any:
    """The typed value of a key for a group with these overrides. A value that was set while the bounds were
    wider counts as the bound.
    """
    (default, low, high), values, key = broker_keys(name), config.values, GROUP[name]
    value = key.parse(overrides[name]) if name in overrides else values.get(default, key.default)
    if low in values:
        value = max(value, values[low])
    return min(value, values[high]) if high in values else value
