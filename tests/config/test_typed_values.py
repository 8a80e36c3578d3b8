"""The types that mypy is told of values, compared with the tables of keys."""

from __future__ import annotations

from typing import Any, get_args, get_overloads, get_type_hints

import pytest

from pykafka_broker.config.broker import BROKER_KEYS, DYNAMIC_ONLY_KEYS, OWN_KEYS
from pykafka_broker.config.keys import REQUIRED, ConfigType, Key
from pykafka_broker.config.typed_values import BrokerKey, TypedValues

KEYS = {key.name: key for key in (*BROKER_KEYS, *OWN_KEYS, *DYNAMIC_ONLY_KEYS)}

PYTHON_TYPES: dict[ConfigType, Any] = {
    ConfigType.BOOLEAN: bool,
    ConfigType.INT: int,
    ConfigType.SHORT: int,
    ConfigType.LONG: int,
    ConfigType.DOUBLE: float,
    ConfigType.STRING: str,
    ConfigType.LIST: tuple[str, ...],
}

#: Name -> the type that reading it has.
READ = {
    name: hints["return"]
    for overload in get_overloads(TypedValues.__getitem__)
    if (hints := get_type_hints(overload))
    for name in get_args(hints["name"])
}


def python_type(key: Key) -> Any:
    kind = PYTHON_TYPES[key.type]
    return kind | None if key.default is None else kind


@pytest.mark.parametrize("name", READ)
def test_a_value_is_read_with_the_type_of_its_key(name: str) -> None:
    assert READ[name] == python_type(KEYS[name])


@pytest.mark.parametrize("name", READ)
def test_a_default_is_of_the_type_of_its_key(name: str) -> None:
    default = KEYS[name].default
    if default is not REQUIRED and default is not None:
        assert isinstance(default, getattr(PYTHON_TYPES[KEYS[name].type], "__origin__", type(default)))
        assert isinstance(default, tuple) is (KEYS[name].type is ConfigType.LIST)


def test_each_key_that_is_read_is_in_one_list() -> None:
    listed = [name for kind in get_args(BrokerKey) for name in get_args(kind)]

    assert sorted(listed) == sorted(READ)
