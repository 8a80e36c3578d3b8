"""A live broker among hostile peers: it lives, its memory is bounded, others notice nothing, the log says it.

The first test sends a seeded sample of what `tests/support/hostile.py` can make; `make fuzz` sends much more.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import struct
from pathlib import Path
from typing import Any

import pytest

from pykafka_broker.apis import APIS
from pykafka_broker.client.core.frames import framed, request_header
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.fields import blank, schema_of
from pykafka_broker.protocol.messages import produce as producing
from pykafka_broker.protocol.records.batch import Codec
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.messages import as_of
from pykafka_broker.testing.user import LATEST
from tests.support.hostile import FULL, bomb, damaged, join, record_pieces, sealed

#: So many damaged frames of each version of each API.
FRAMES = int(os.environ.get("FUZZ_FRAMES", "8"))
PATIENCE_SECONDS = 60
LARGEST_GROWTH_BYTES = 100 << 20
VERSIONS = [(api, version) for api in APIS for version in schema_of(api.request).served_versions]
RECORDS = join(record_pieces([(b"key", b"value", {})] * 3))


def header(api_key: int, version: int) -> bytes:
    return request_header(api_key, version, 7, "hostile")


async def talk(home: Home, data: bytes) -> bytes:
    """Send `data` and no more; all that the broker says before it closes the connection."""
    host, _, port = home.broker.bootstrap_servers.rpartition(":")
    async with asyncio.timeout(PATIENCE_SECONDS):
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(data)
            writer.write_eof()
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def hostile_frames() -> list[bytes]:
    """Damaged in their body, in the header, or in their size; in a random but always the same order."""
    chance = random.Random(4)
    frames = []
    for api, version in VERSIONS:
        head = header(api.key, version)
        cases = [data for _, data in damaged(FULL[api.request, version], values=True)]
        frames += [framed(head + body) for body in chance.sample(cases, min(FRAMES, len(cases)))]
        spoilt_head = bytearray(head)
        spoilt_head[chance.randrange(4, len(head))] = chance.randrange(256)
        whole = join(FULL[api.request, version])
        frames.append(framed(bytes(spoilt_head) + whole))
        frames.append(struct.pack(">i", len(head) + len(whole) + 9) + head + whole)
    frames += [struct.pack(">i", size) + b"junk" for size in (-(2**31), -1, 0, 1, 3, 100 << 20, 2**31 - 1)]
    frames += [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\x00", b""]
    chance.shuffle(frames)
    return frames


async def test_the_broker_survives_hostile_frames_and_other_clients_do_not_notice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    home = Home({"num.partitions": "1", "auto.create.topics.enable": "false"})
    with caplog.at_level(logging.WARNING):
        async with home.running() as user:
            await user.create_topic("orders")
            frames = hostile_frames()
            before = resident_bytes()
            for number, frame in enumerate(frames):
                if number % 50 == 0:
                    await user.produce("orders", b"%d" % number)
                    await user.try_to_create_topic("name", 6)  # what the frames are about
                await talk(home, frame)
            counters = home.broker.node.listeners.shared.counters

            assert len(frames) > 1000
            assert counters.requests > len(frames) / 4
            assert resident_bytes() - before < LARGEST_GROWTH_BYTES
            assert await user.values("orders") == [b"%d" % number for number in range(0, len(frames), 50)]
            assert counters.handler_failures == 0, caplog.text
            assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []

            closed = counters.connections_closed_for_errors
            assert closed > len(frames) / 4
            lines = [record for record in caplog.records if "Closing connection" in record.getMessage()]
            assert len(lines) == 1
            await home.pass_time(11_000)
            await talk(home, framed(b"\xff" * 20))
            assert f"({closed - 1} more of these since the last such line)" in caplog.text


def nothing(cls: type[Any]) -> Any:
    """A request of zeros and empty lists, and null wherever that is possible."""
    request = blank(cls)
    for field in schema_of(cls).fields:
        if field.nullable:
            setattr(request, field.name, None)
    return request


@pytest.mark.parametrize("empty", [blank, nothing])
async def test_every_api_takes_the_emptiest_request_there_is(
    empty: Any, caplog: pytest.LogCaptureFixture
) -> None:
    home = Home()
    async with home.running() as user:
        for api, version in VERSIONS:
            body = encode(as_of(empty(api.request), version), version)
            await talk(home, framed(header(api.key, version) + body))

        assert home.broker.node.listeners.shared.counters.handler_failures == 0, caplog.text
        assert await user.topics() == {}


@pytest.mark.parametrize(
    ("batch", "code"),
    [
        (sealed(RECORDS, 3, crc=1), ErrorCode.CORRUPT_MESSAGE),
        (sealed(RECORDS, 3, magic=0), ErrorCode.INVALID_RECORD),
        (sealed(RECORDS, 3, magic=1), ErrorCode.INVALID_RECORD),
        (sealed(RECORDS, 3, magic=3), ErrorCode.CORRUPT_MESSAGE),
        (sealed(RECORDS, 3, records_count=2), ErrorCode.INVALID_RECORD),
        (sealed(RECORDS, 2), ErrorCode.INVALID_RECORD),
        (sealed(RECORDS, 4), ErrorCode.INVALID_RECORD),
        (sealed(RECORDS, 2**31 - 1), ErrorCode.INVALID_RECORD),
        (sealed(RECORDS[:-1], 3), ErrorCode.INVALID_RECORD),
        (sealed(RECORDS + b"\0", 3), ErrorCode.INVALID_RECORD),
        (sealed(RECORDS[:20] * 3, 3), ErrorCode.INVALID_RECORD),
        (sealed(bytes(100), 3), ErrorCode.INVALID_RECORD),
        (bomb(Codec.GZIP, 101 << 20), ErrorCode.MESSAGE_TOO_LARGE),
        (bomb(Codec.LZ4, 101 << 20), ErrorCode.MESSAGE_TOO_LARGE),
        (bomb(Codec.ZSTD, 101 << 20), ErrorCode.MESSAGE_TOO_LARGE),
        (bomb(Codec.SNAPPY, 16 << 20), ErrorCode.INVALID_RECORD),
    ],
)
async def test_a_hostile_batch_is_refused_and_takes_no_offset(batch: bytes, code: ErrorCode) -> None:
    async with Home().running() as user:
        await user.create_topic("orders")
        await user.produce("orders", b"good")
        data = producing.PartitionProduceData(index=0, records=batch)
        topic = producing.TopicProduceData(name="orders", partition_data=[data])
        answer = await user.send(producing.ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[topic]), 9)

        assert ErrorCode(answer.responses[0].partition_responses[0].error_code) == code
        assert await user.offset_for("orders", LATEST) == 1
        assert await user.values("orders") == [b"good"]
