"""Which versions of each API our node serves: those at which conversations are held."""

from __future__ import annotations

from functools import cache
from typing import Any

from pykafka_broker.apis import APIS
from pykafka_broker.apis.api import Api
from pykafka_broker.apis.controller_apis import CONTROLLER_APIS
from pykafka_broker.protocol.fields import HIGHEST_VERSION, schema_of
from pykafka_broker.protocol.messages import module_name, request_type


def served_versions(api: str) -> tuple[int, ...]:
    """The versions of an API that our node serves; those of a file that is about no API are "0"."""
    return _served().get(api, (0,))


@cache
def _served() -> dict[str, tuple[int, ...]]:
    apis: tuple[Api[Any], ...] = (*APIS, *CONTROLLER_APIS)
    return {module_name(api.key): tuple(range(api.min_version, api.max_version + 1)) for api in apis}


def latest_version(api_key: int) -> int:
    """The newest served version: set-up uses it."""
    served = _served().get(module_name(api_key))
    newest = served[-1] if served else schema_of(request_type(api_key)).versions[-1]
    assert newest <= HIGHEST_VERSION
    return newest
