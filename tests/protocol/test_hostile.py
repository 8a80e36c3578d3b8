"""Messages that a peer made to do harm are read or refused, and cost no more than their bytes are worth.

`make fuzz` runs the drawn ones by the hundred thousand.
"""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pykafka_broker.protocol.compile import decode, decoder, encode
from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.protocol.messages.describe_configs import DescribeConfigsRequest
from pykafka_broker.protocol.messages.headers import RequestHeader
from pykafka_broker.protocol.wire import ELEMENTS_PER_TAG, MAX_ELEMENTS, MAX_TAGS
from pykafka_broker.testing.messages import as_of, full, messages
from tests.support.hostile import EVERYTHING, FULL, damaged, hostile_bytes, join, pieces, uvarint

CASES = int(os.environ.get("FUZZ_CASES", "2000"))


def is_read(cls: type[Any], version: int, data: bytes) -> bool:
    """Whether it is a message; anything but a message or a refusal is raised."""
    try:
        _, pos = decoder(cls, version)(data)
    except ProtocolError:
        return False
    assert 0 <= pos <= len(data)
    return True


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(EVERYTHING), st.data())
def test_a_message_in_pieces_is_the_message(cls: type[Any], data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(schema_of(cls).versions))
    message = as_of(data.draw(messages(cls)), version)

    assert join(pieces(message, version)) == encode(message, version)


def test_every_hostile_length_count_varint_and_tag_of_every_version_is_read_or_refused() -> None:
    cases = read = 0
    for (cls, version), parts in FULL.items():
        for _, data in damaged(parts):
            cases += 1
            read += is_read(cls, version, data)

    assert cases > 100_000
    assert 0 < read < cases / 2


def test_every_message_may_be_followed_by_anything_and_cut_anywhere() -> None:
    for (cls, version), parts in FULL.items():
        whole = join(parts)
        assert decode(cls, version, whole + b"\xff" * 9) == (as_of(full(cls), version), len(whole))
        for length in range(len(whole)):
            assert not is_read(cls, version, whole[:length])


@settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))
@given(hostile_bytes())
def test_a_spoilt_message_is_read_or_refused(case: tuple[type[Any], int, bytes]) -> None:
    cls, version, data = case
    if is_read(cls, version, data):
        message, _ = decode(cls, version, data)
        again = encode(message, version)
        assert encode(decode(cls, version, again)[0], version) == again


@pytest.fixture
def traced() -> Iterator[None]:
    """Memory is traced, so that `peak_bytes` can be asked."""
    tracemalloc.start()
    yield
    tracemalloc.stop()


def peak_bytes(cls: type[Any], version: int, data: bytes) -> int:
    """The memory that reading `data` takes at its worst."""
    decoder(cls, version)
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    is_read(cls, version, data)
    return tracemalloc.get_traced_memory()[1] - before


@pytest.mark.usefixtures("traced")
def test_a_claim_of_billions_costs_nothing() -> None:
    """Each length of each API's newest version says 2**31 - 1, and 2**32 - 1 where it can."""
    claims = (b"\x7f\xff\xff\xff", uvarint(2**31 - 1), uvarint(2**32 - 1))
    for (cls, version), parts in FULL.items():
        if version != schema_of(cls).versions[-1]:
            continue
        for index, piece in enumerate(parts):
            if piece.kind.endswith(("length", "count", "size")) and len(piece.data) in (1, 4):
                for claim in claims:
                    data = join([*parts[:index], piece._replace(data=claim), *parts[index + 1 :]])
                    assert peak_bytes(cls, version, data) < 64 * 1024, piece


def nested(arrays: int, keys: int) -> bytes:
    """DescribeConfigs v4 that asks of `arrays` resources `keys` keys with empty names."""
    resource = b"\x02" + b"\x01" + uvarint(keys + 1) + b"\x01" * keys + b"\x00"
    return uvarint(arrays + 1) + resource * arrays + b"\x00\x00\x00"


def test_arrays_inside_arrays_have_a_limit_together() -> None:
    """100 MB of empty names in lists of a million each were 800 MB of list."""
    keys = MAX_ELEMENTS // 100 - 1
    assert is_read(DescribeConfigsRequest, 4, nested(100, keys))
    assert not is_read(DescribeConfigsRequest, 4, nested(101, keys))


def test_tags_of_all_structs_have_a_limit_together() -> None:
    """5 000 structs of 10 000 tags each, in 100 MB, held the event loop for 20 seconds."""
    tags = uvarint(MAX_TAGS) + b"\x63\x00" * MAX_TAGS
    resource = b"\x02\x01\x00" + tags
    most = MAX_ELEMENTS // (ELEMENTS_PER_TAG * MAX_TAGS) - 1
    assert is_read(DescribeConfigsRequest, 4, uvarint(most + 1) + resource * most + b"\x00\x00\x00")
    assert not is_read(DescribeConfigsRequest, 4, uvarint(most + 3) + resource * (most + 2) + b"\x00\x00\x00")


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("count", [10_001, 2**28, 2**31, 2**32 - 1])
def test_too_many_tags_in_a_header_are_refused_before_they_are_looked_at(count: int) -> None:
    header = RequestHeader(request_api_key=18, request_api_version=3, correlation_id=1, client_id="client")
    data = encode(header, 2)[:-1] + uvarint(count) + b"\x63\x00" * 20_000

    assert not is_read(RequestHeader, 2, data)
    assert peak_bytes(RequestHeader, 2, data) < 64 * 1024
