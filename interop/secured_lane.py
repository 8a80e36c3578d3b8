"""The lane `security`: every client, in every way into a secured node or several (`ways.toml`).

In each way it runs the scenarios of the matrix that say so, which do not know where they are held, and is
refused what its user may not do, with the error code that the scenario names: with Apache Kafka
(`--broker apache`) as with ours. Each client has a world of its own, so that it reads itself what it wrote:
what clients read of each other is the matter of the lane `clients`.
"""

from __future__ import annotations

import threading
import time
import tomllib
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from interop.clients.client import Record
from interop.clients.driven import ToolchainMissingError
from interop.clients.login import Login
from interop.matrix_result import MatrixResult
from interop.run import SHOWN, Results, Scenario, load_matrix, load_scenario, row, run_matrix
from interop.secured import Secured, secured, user_of
from interop.world import Entrance, World
from pykafka_broker.testing.apache.jars import ApacheUnavailableError
from pykafka_broker.testing.apache.nodes import Software

#: A client that is kept out may try again and again, while others do.
PATIENCE_S = 12.0
STRANGERS_AT_ONCE = 6
#: Most of the time they wait.
CLIENTS_AT_ONCE = 4
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


def allowed() -> list[Scenario]:
    """What a user may do: scenarios of the matrix, of which a client may lack more than there."""
    matrix = {scenario.name: scenario for scenario in load_matrix()[1]}
    rows = tomllib.loads(WAYS_FILE.read_text())["allowed"]
    chosen = [(matrix[each["run"]], each.get("lacks", {})) for each in rows]
    return [replace(scenario, lacks={**scenario.lacks, **lacks}) for scenario, lacks in chosen]


def refusals() -> list[Scenario]:
    """What it may not."""
    return [load_scenario(each) for each in tomllib.loads(WAYS_FILE.read_text())["refusal"]]


def scenarios() -> list[Scenario]:
    return [*allowed(), *refusals()]


def titles() -> list[str]:
    """The rows of the table, as results have them."""
    strangers = [f"security.{each.title}" for each in STRANGERS]
    return [*map(row_of, ways()), *(each.name for each in scenarios()), *strangers]


def row_of(way: Way) -> str:
    return f"security.{way.title}"


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
        lambda running: replace(running.login("plain"), password="guessed"),
    ),
)


@dataclass(frozen=True)
class CameIn:
    """One client in one way."""

    results: Results
    took_s: float
    version: str = ""
    #: Why it cannot run on this machine.
    missing: str = ""


@dataclass(frozen=True)
class Found:
    result: MatrixResult
    #: Clients that cannot run on this machine, and why.
    missing: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


def run(
    software: Software, names: Sequence[str], only: str, report: Callable[[str], None], nodes: int = 1
) -> Found:
    """Each of these clients in each of its ways into so many nodes; of the ways and scenarios, those whose
    names, joined by a dot, hold `only`.
    """
    found = Found(MatrixResult({}, {}))
    cells, versions = found.result.cells, found.result.versions
    with secured(software, nodes) as running:
        report(row("ways into a secured node" if nodes == 1 else f"ways into {nodes} secured nodes", names))
        for way in ways():
            chosen = [each for each in scenarios() if only in f"{way.name}.{each.name}"]
            if not chosen:
                continue
            shown = []
            with ThreadPoolExecutor(CLIENTS_AT_ONCE) as pool:
                held = pool.map(partial(_came_in, running, way, scenarios=chosen), names)
                for name, came_in in zip(names, held, strict=True):
                    shown.append(_noted(found, way, name, came_in))
            report(row(way.title, shown))
        for stranger in STRANGERS:
            if only in stranger.way:
                began = time.monotonic()
                for name, cell in _kept_out(running, stranger, list(versions)).items():
                    _note(cells, f"security.{stranger.title}", name, cell)
                    if cell != "pass":
                        found.failures.append(f"{stranger.title} with {name}: {cell}")
                report(row(stranger.title, [f"all at once, {time.monotonic() - began:.1f}s"]))
    return found


def _came_in(running: Secured, way: Way, name: str, scenarios: Sequence[Scenario]) -> CameIn:
    """What became of these scenarios with one client; nothing of a client that has not this way."""
    began, access = time.monotonic(), running.access(way.name)
    if name in way.lacks:
        return CameIn(Results(), 0)
    try:
        client = access.clients.connect(name)
    except (ToolchainMissingError, ApacheUnavailableError) as error:
        return CameIn(Results(), 0, missing=str(error))
    except Exception as error:
        told = f"it does not come in with {name}: {error}\n{traceback.format_exc(limit=-4)}"
        cell = f"fails: {error}".partition("\n")[0]
        return CameIn(Results({row_of(way): {name: cell}}, [told]), time.monotonic() - began)
    with closing(World(running.nodes, {name: client}, access)) as world:
        results = run_matrix(world, scenarios, lambda line: None)
    return CameIn(results, time.monotonic() - began, version=client.version)


def _noted(found: Found, way: Way, name: str, came_in: CameIn) -> str:
    """What is shown of it; what came out is put with the rest."""
    if came_in.missing:
        found.missing[name] = came_in.missing
        return "missing"
    if came_in.version:
        found.result.versions[name] = came_in.version
    found.failures.extend(f"{way.title}: {failure}" for failure in came_in.results.failures)
    cells = {title: of_clients[name] for title, of_clients in came_in.results.cells.items()}
    failing = [cell for cell in cells.values() if cell.startswith("fails")]
    of_way = f"lacks: {way.lacks[name]}" if name in way.lacks else failing[0] if failing else "pass"
    for title, cell in {**cells, row_of(way): of_way}.items():
        _note(found.result.cells, title, name, cell)
    return SHOWN[of_way.partition(":")[0]].format(came_in.took_s)


def _note(cells: dict[str, dict[str, str]], title: str, name: str, cell: str) -> None:
    """What fails in one way has failed."""
    of_clients = cells.setdefault(title, {})
    if not of_clients.get(name, "").startswith("fails"):
        of_clients[name] = cell


def _kept_out(running: Secured, stranger: Stranger, names: Sequence[str]) -> dict[str, str]:
    """Whether clients stay out: a cell for each."""
    topics = {name: f"{user_of(stranger.way)}-for-{name}-of-{stranger.way}-strangers" for name in names}
    for topic in topics.values():
        running.create(topic)
    entrance = replace(running.entrances[stranger.way], login=stranger.login(running))
    with ThreadPoolExecutor(STRANGERS_AT_ONCE) as pool:
        came_in = dict(
            zip(names, pool.map(partial(_comes_in, entrance), names, topics.values()), strict=True)
        )
    return {
        name: "fails: it was let in" if came_in[name] or running.end_of(topic) else "pass"
        for name, topic in topics.items()
    }


def _comes_in(entrance: Entrance, name: str, topic: str) -> bool:
    """Whether a client writes to the topic; one that tries again and again is left alone after a while."""
    written: list[bool] = []

    def come_in() -> None:
        with suppress(Exception):
            client = entrance.connect(name)
            try:
                client.produce(topic, [Record(b"from a stranger")])
                written.append(True)
            finally:
                client.close()

    trying = threading.Thread(target=come_in, daemon=True)
    trying.start()
    trying.join(PATIENCE_S)
    return bool(written)
