"""Clients of metrics listeners."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from pykafka_broker.broker.broker import Broker
from pykafka_broker.testing.home import PATIENCE_SECONDS

METRICS = "http://127.0.0.1:0"


class Page(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: str


class Browser:
    """One connection to the metrics listener of a broker."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def of(cls, broker: Broker) -> Browser:
        return await cls.at(*broker.node.listeners.listeners[METRICS].address)

    @classmethod
    async def at(cls, host: str, port: int) -> Browser:
        return cls(*await asyncio.open_connection(host, port))

    async def get(
        self, path: str, *, method: str = "GET", version: str = "1.1", host: str = "here", more: str = ""
    ) -> Page:
        """The answer to one request."""
        self.writer.write(f"{method} {path} HTTP/{version}\r\nHost: {host}\r\n{more}\r\n".encode())
        return await self.answer(has_body=method != "HEAD")

    async def answer(self, *, has_body: bool = True) -> Page:
        async with asyncio.timeout(PATIENCE_SECONDS):
            first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
            headers = {name: value for name, _, value in (line.partition(": ") for line in lines)}
            body = await self._body(headers) if has_body else b""
        return Page(int(first.split(" ")[1]), headers, body.decode())

    async def _body(self, headers: Mapping[str, str]) -> bytes:
        if "Content-Length" in headers:
            return await self.reader.readexactly(int(headers["Content-Length"]))
        if "Transfer-Encoding" not in headers:
            return await self.reader.read()
        parts = []
        while size := int(await self.reader.readline(), 16):
            parts.append(await self.reader.readexactly(size))
            await self.reader.readline()
        await self.reader.readline()
        return b"".join(parts)

    async def closes(self) -> bool:
        """Whether the other side closes the connection, without a further byte."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await self.reader.read() == b""
        except ConnectionResetError:
            return True

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples_of(text: str) -> Samples:
    """All samples of a page, by name and labels; each is there once."""
    found = [
        ((sample.name, frozenset(sample.labels.items())), sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]
    samples = dict(found)
    assert len(samples) == len(found)
    return samples


async def scrape(broker: Broker) -> Samples:
    """The samples of a broker as they are now."""
    browser = await Browser.of(broker)
    page = await browser.get("/metrics")
    await browser.close()
    assert page.status == 200
    return samples_of(page.body)


def value(samples: Samples, name: str, **labels: str) -> float | None:
    """A sample; None if there is none."""
    return samples.get((name, frozenset(labels.items())))
