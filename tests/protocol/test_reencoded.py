"""Our bytes of the messages that no client exchanges: Apache's own classes read them and wrote back the same.

`make reencode` asks them about every message, and keeps one encoding per version of these in `reencoded.txt`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafka_broker.protocol.compile import decode, encode
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.testing.messages import as_of, everything, full

KNOWN = [line.split(" ") for line in (Path(__file__).parent / "reencoded.txt").read_text().splitlines()]
CLASSES: dict[str, type[Any]] = {schema_of(cls).name: cls for cls in everything()}


@pytest.mark.parametrize(("name", "version", "encoded"), KNOWN, ids=lambda value: value[:50])
def test_every_field_is_encoded_as_apache_does(name: str, version: str, encoded: str) -> None:
    message = as_of(full(CLASSES[name]), int(version))

    assert encode(message, int(version)).hex() == encoded
    assert decode(CLASSES[name], int(version), bytes.fromhex(encoded)) == (message, len(encoded) // 2)


def test_every_version_of_these_messages_is_there() -> None:
    names = {name for name, _, _ in KNOWN}

    assert {(name, int(version)) for name, version, _ in KNOWN} == {
        (name, version) for name in names for version in schema_of(CLASSES[name]).versions
    }
    assert {"PartitionRecord", "OffsetCommitValue", "VotersRecord", "RequestHeader"} <= names
