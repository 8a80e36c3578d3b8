"""What we encode decodes to the same in every version of every message; bad bytes are at worst refused."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pykafka_broker.protocol.compile import decode, encode, encode_parts
from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.testing.messages import as_of, everything, full, messages

EVERYTHING = everything()
each_message = pytest.mark.parametrize("cls", EVERYTHING, ids=lambda cls: cls.__name__)


@each_message
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_decoding_gives_back_what_was_encoded_in_every_version(cls: type[Any], data: st.DataObject) -> None:
    drawn = data.draw(messages(cls))
    for version in schema_of(cls).versions:
        message = as_of(drawn, version)
        encoded = encode(message, version)
        assert decode(cls, version, encoded) == (message, len(encoded))
        assert b"".join(encode_parts(message, version)) == encoded


@each_message
def test_a_message_with_every_field_set_survives_every_version(cls: type[Any]) -> None:
    for version in schema_of(cls).versions:
        message = as_of(full(cls), version)
        encoded = encode(message, version)
        assert decode(cls, version, encoded) == (message, len(encoded))


@each_message
def test_a_message_that_is_cut_at_any_byte_is_refused(cls: type[Any]) -> None:
    for version in schema_of(cls).versions:
        encoded = encode(full(cls), version)
        for length in range(len(encoded)):
            with pytest.raises(ProtocolError):
                decode(cls, version, encoded[:length])


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(EVERYTHING), st.data())
def test_damaged_bytes_are_read_or_refused_and_do_nothing_else(cls: type[Any], data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(schema_of(cls).versions))
    damaged = bytearray(encode(full(cls), version))
    for _ in range(data.draw(st.integers(1, 3)) if damaged else 0):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(
            st.sampled_from([0, 1, 127, 128, 254, 255])
        )
    with suppress(ProtocolError):
        decode(cls, version, damaged)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(EVERYTHING), st.data(), st.binary(max_size=100))
def test_any_bytes_are_read_or_refused_and_do_nothing_else(
    cls: type[Any], data: st.DataObject, noise: bytes
) -> None:
    version = data.draw(st.sampled_from(schema_of(cls).versions))
    with suppress(ProtocolError):
        decode(cls, version, noise)
