"""The SCRAM credentials that a new cluster begins with (`format --add-scram`).

    SCRAM-SHA-256=[name=alice,password=alice-secret]
    SCRAM-SHA-512=[name=alice,iterations=8192,salt="N3E=",saltedpassword="YCE="]

As in Apache Kafka's ScramParser. Its error texts are given without the faulty input, which may have a
password in the wrong place.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable

from pykafka_broker.cluster.image import METADATA_VERSION
from pykafka_broker.cluster.scram_records import credential_record
from pykafka_broker.controller.core.scram_credentials import SCRAM_VERSION
from pykafka_broker.protocol.messages.records import metadata as m
from pykafka_broker.sasl.scram_keys import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    SCRAM_MECHANISMS,
    credential_of,
    salted_password,
)


def scram_records(
    arguments: Iterable[str], metadata_version: int, new_salt: Callable[[], bytes]
) -> tuple[m.UserScramCredentialRecord, ...]:
    """The records of these credentials; `new_salt` makes missing salts.

    Raises:
        ValueError: an argument is not of this form, or `metadata_version` has no such records.
    """
    records = tuple(_record(argument.strip(), new_salt) for argument in arguments)
    if records and metadata_version < SCRAM_VERSION:
        raise ValueError(f"SCRAM is only supported in {METADATA_VERSION} 3.5-IV2 or later.")
    return records


def _record(argument: str, new_salt: Callable[[], bytes]) -> m.UserScramCredentialRecord:
    name, equals, config = argument.partition("=")
    if not equals:
        raise ValueError("Failed to find equals sign in SCRAM argument")
    mechanism = SCRAM_MECHANISMS.get(name)
    if mechanism is None:
        raise ValueError(f"The add-scram mechanism {name} is not supported.")
    if not config.startswith("["):
        raise ValueError("Expected configuration string to start with [")
    if not config.endswith("]"):
        raise ValueError("Expected configuration string to end with ]")
    parts = dict(map(_part, config[1:-1].split(",")))
    user = parts.pop("name", None)
    if user is None:
        raise ValueError("You must supply 'name' to add-scram")
    salt_text, iterations = parts.pop("salt", None), _iterations(name, parts.pop("iterations", "4096"))
    password, salted_text = parts.pop("password", None), parts.pop("saltedpassword", None)
    if password is None and salted_text is None:
        raise ValueError("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if password is None and salt_text is None:
        raise ValueError("You must supply 'salt' with 'saltedpassword' to add-scram")
    if parts:
        raise ValueError(f"Unknown SCRAM configurations: {', '.join(sorted(parts))}")
    salt = new_salt() if salt_text is None else _decoded("salt", salt_text)
    if password is not None:
        salted = salted_password(mechanism, password, salt, iterations)
    else:
        salted = _decoded("saltedPassword", salted_text or "")
    return credential_record(user, mechanism, credential_of(mechanism, salted, salt, iterations))


def _part(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ValueError("No equals sign found in SCRAM component")
    quoted = len(value) >= 2 and value[0] == value[-1] == '"'
    return key, value[1:-1] if quoted else value


def _iterations(mechanism: str, text: str) -> int:
    try:
        iterations = int(text)
    except ValueError:
        raise ValueError("Failed to parse iterations count") from None
    if iterations < MIN_ITERATIONS:
        raise ValueError(
            f"The 'iterations' value must be >= {MIN_ITERATIONS} for add-scram using {mechanism}"
        )
    if iterations > MAX_ITERATIONS:
        raise ValueError(
            f"The 'iterations' value must be <= {MAX_ITERATIONS} for add-scram using {mechanism}"
        )
    return iterations


def _decoded(what: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError(f"Failed to decode given {what}") from None
