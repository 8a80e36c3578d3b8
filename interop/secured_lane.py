"""The lane `security`: every client, in every way into a secured node or several (`ways.toml`)."""

from __future__ import annotations

import threading
import time
import tomllib
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from interop.clients import connect
from interop.clients.client import Client, Record
from interop.clients.driven import ToolchainMissingError
from interop.clients.login import Login
from interop.matrix_result import MatrixResult
from interop.run import SHOWN, row
from interop.scenarios.security import is_denied_the_topic_of_others, works_in_its_own_topic
from interop.secured import FORBIDDEN, Secured, secured, user_of
from interop.world import World
from pykafka_broker.testing.apache.jars import ApacheUnavailableError
from pykafka_broker.testing.apache.nodes import Software

#: A client that is kept out may try again and again.
PATIENCE_S = 12.0
WAYS_FILE = Path(__file__).parent / "ways.toml"


@dataclass(frozen=True)
class Way:
    name: str
    title: str
    #: By client, why it has not this way.
    lacks: dict[str, str]


def ways() -> list[Way]:
    rows = tomllib.loads(WAYS_FILE.read_text())["way"]
    return [Way(each["name"], each["title"], dict(each.get("lacks", {}))) for each in rows]


def denial() -> Way:
    """What is tried in each way; its `lacks` are the clients that are not asked for it."""
    found = tomllib.loads(WAYS_FILE.read_text())["denial"]
    return Way("denial", found["title"], dict(found["lacks"]))


def titles() -> list[str]:
    """The rows of the table, as results have them."""
    named = [each.title for each in (*ways(), denial())] + [each.title for each in STRANGERS]
    return [f"security.{title}" for title in named]


@dataclass(frozen=True)
class Stranger:
    """Who comes in one way and is to be kept out."""

    way: str
    title: str
    #: What the stranger has in the place of the user's login.
    login: Callable[[Secured], Login]


STRANGERS = (
    Stranger(
        "mtls",
        "is refused with a certificate of another authority",
        lambda running: running.foreign("mtls"),
    ),
    Stranger(
        "plain",
        "is refused with a wrong password",
        lambda running: replace(running.logins["plain"], password="guessed"),
    ),
)


@dataclass(frozen=True)
class Found:
    result: MatrixResult
    #: Clients that cannot run on this machine, and why.
    missing: dict[str, str]
    failures: list[str]


def run(
    software: Software, names: Sequence[str], only: str, report: Callable[[str], None], nodes: int = 1
) -> Found:
    """Each of these clients in each way whose name holds `only`, into so many nodes."""
    versions: dict[str, str] = {}
    cells: dict[str, dict[str, str]] = {}
    found = Found(MatrixResult(versions, cells), {}, [])
    with secured(software, nodes) as running:
        report(row("ways into a secured node" if nodes == 1 else f"ways into {nodes} secured nodes", names))
        for way in (way for way in ways() if only in way.name):
            shown = []
            for name in names:
                began = time.monotonic()
                try:
                    cell = _cell(running, way, name, versions, found.failures)
                except (ToolchainMissingError, ApacheUnavailableError) as error:
                    found.missing[name] = str(error)
                    shown.append("missing")
                    continue
                cells.setdefault(f"security.{way.title}", {})[name] = cell
                shown.append(SHOWN[cell.partition(":")[0]].format(time.monotonic() - began))
            report(row(way.title, shown))
        for stranger in STRANGERS:
            if only in stranger.way:
                shown = []
                for name in versions:
                    began = time.monotonic()
                    cell = _refused(running, stranger, name, found.failures)
                    cells.setdefault(f"security.{stranger.title}", {})[name] = cell
                    shown.append(SHOWN[cell.partition(":")[0]].format(time.monotonic() - began))
                report(row(stranger.title, shown))
    lacking = denial()
    # A client that was not denied has failed in that way.
    denied = {name: f"lacks: {lacking.lacks[name]}" if name in lacking.lacks else "pass" for name in versions}
    if not found.failures:
        cells[f"security.{lacking.title}"] = denied
    return found


def _cell(running: Secured, way: Way, name: str, versions: dict[str, str], failures: list[str]) -> str:
    if name in way.lacks:
        return f"lacks: {way.lacks[name]}"
    try:
        client = connect(name, running.addresses[way.name], running.logins[way.name])
        try:
            versions[name] = client.version
            _try(running, way, client)
        finally:
            client.close()
    except (ToolchainMissingError, ApacheUnavailableError):
        raise
    except Exception as error:
        failures.append(f"{way.title} with {name}: {error}\n{traceback.format_exc(limit=-4)}")
        return f"fails: {str(error).partition(chr(10))[0]}"
    return "pass"


def _refused(running: Secured, stranger: Stranger, name: str, failures: list[str]) -> str:
    """Whether a client stays out; one that tries again and again is left alone after a while."""
    topic = f"{user_of(stranger.way)}-for-{stranger.way}-strangers"
    running.create_once(topic)
    login = stranger.login(running)
    written: list[bool] = []

    def come_in() -> None:
        with suppress(Exception):
            client = connect(name, running.addresses[stranger.way], login)
            try:
                client.produce(topic, [Record(b"from a stranger")])
                written.append(True)
            finally:
                client.close()

    trying = threading.Thread(target=come_in, daemon=True)
    trying.start()
    trying.join(PATIENCE_S)
    if written or running.end_of(topic):
        failures.append(f"{stranger.title} with {name}: it was let in")
        return "fails: it was let in"
    return "pass"


def _try(running: Secured, way: Way, client: Client) -> None:
    world = World(running.nodes, {client.name: client})
    user = user_of(way.name)
    topic = world.name(f"{user}-{client.name}")
    running.create(topic)
    works_in_its_own_topic(world, client, user, topic)
    if client.name not in denial().lacks:
        is_denied_the_topic_of_others(client, FORBIDDEN)
