"""Running commands in this process, and a broker for them to talk to."""

from __future__ import annotations

import asyncio
import io
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from pykafka_broker.broker.broker import Broker
from pykafka_broker.cli import health, main
from pykafka_broker.config.authorizer import STANDARD_AUTHORIZER
from pykafka_broker.config.sources import load_config
from pykafka_broker.system.event_loop import loop_factory


class Result(NamedTuple):
    """What a command did."""

    status: int
    out: str
    err: str


Run = Callable[..., Result]


def run_command(*arguments: str, stdin: bytes = b"") -> Result:
    """Run `pykafka-broker <arguments>`."""
    streams = sys.stdin, sys.stdout, sys.stderr
    out, err = Output(), Output()
    sys.stdin, sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO(stdin)), out, err
    try:
        with pytest.raises(SystemExit) as end:
            main(list(arguments))
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
    status = end.value.code
    assert isinstance(status, int)
    return Result(status, out.text, err.text)


class Output(io.TextIOWrapper):
    """A standard stream that keeps what is written to it, as text or as bytes."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    @property
    def text(self) -> str:
        self.flush()
        self.seek(0)
        return self.read()


class RunningBroker:
    """A broker on an event loop of its own, in a thread: the commands block theirs."""

    def __init__(self, data_dir: Path, port: int | None = 0, overrides: Sequence[str] = ()) -> None:
        """`port` is None where `overrides` say on which addresses to listen."""
        self.address = ""
        self._loop = loop_factory()()
        listen = None if port is None else f"127.0.0.1:{port}"
        self._config = load_config(listen=listen, data_dir=str(data_dir), overrides=overrides)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._main())

    async def _main(self) -> None:
        self._stop = asyncio.Event()
        async with Broker(self._config) as broker:
            self.address = broker.bootstrap_servers
            self._ready.set()
            await self._stop.wait()

    def __enter__(self) -> RunningBroker:
        self._thread.start()
        assert self._ready.wait(120)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    """Give the leader of the quorum all the time of `health --timeout`: it may run in this process, as the
    command does, and a collection of its garbage can take a second.
    """
    # Not the test's own: what a test replaces is to be back before the other fixtures end.
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(health, "LEADER_WITHIN_S", 30.0)
        yield


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker that the tests of a command share; each uses topics of its own."""
    # Everybody is a super user: commands about ACLs have something to do, and the others all rights.
    acls = [f"authorizer.class.name={STANDARD_AUTHORIZER}", "super.users=User:ANONYMOUS"]
    with RunningBroker(tmp_path_factory.mktemp("data"), overrides=acls) as running:
        yield running.address


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes the standard streams of commands (but for the output, if wanted) a terminal without colours."""
    for name in ("FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")

    # Tests import this file, which pytest itself has loaded under another name.
    from tests.cli.conftest import Output as Imported

    def make(width: int, *, output_too: bool = True) -> None:
        for stream in (Output, Imported):
            monkeypatch.setattr(
                stream, "isatty", lambda self: output_too or self is not sys.stdout, raising=False
            )
        monkeypatch.setenv("COLUMNS", str(width))

    return make


@pytest.fixture
def run(broker: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs commands that talk to the broker."""
    monkeypatch.setenv("PYKAFKA_BROKER_BOOTSTRAP_SERVER", broker)
    return run_command


def formatted_controller(folder: Path) -> Path:
    """The configuration of a controller that is formatted for a quorum that there is."""
    folder.mkdir(exist_ok=True)
    file = folder / "controller.properties"
    file.write_text(
        "process.roles=controller\n"
        "node.id=7\n"
        "listeners=CONTROLLER://127.0.0.1:1\n"
        "controller.listener.names=CONTROLLER\n"
        "controller.quorum.bootstrap.servers=127.0.0.1:9093\n"
        f"log.dirs={folder}/data\n"
    )
    formatted = run_command("format", "--config", str(file), "--no-initial-controllers")
    assert formatted.status == 0, formatted.err
    return file
