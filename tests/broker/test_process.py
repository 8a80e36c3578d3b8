"""A broker as a process of its own, on a real disk: signals, refusals in one line, a volume that is full."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pykafka_broker.log.disk.files import OsFileSystem
from pykafka_broker.machine.clock import SystemClock
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.system.processes import described
from pykafka_broker.testing.home import Home, until
from pykafka_broker.testing.processes import PykafkaBroker
from pykafka_broker.testing.user import User
from tests.cli.conftest import run_command

KIB = 1024


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A folder that has been formatted."""
    assert run_command("format", "--data-dir", str(tmp_path / "data")).status == 0
    return tmp_path / "data"


def refused(*arguments: str) -> str:
    """The last line of a start that must fail: one error, exit status 1, no traceback."""
    start = subprocess.run(
        [sys.executable, "-m", "pykafka_broker", "start", "--listen", "127.0.0.1:0", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    output = start.stdout + start.stderr
    assert start.returncode == 1, output
    assert "Traceback" not in output
    assert "Kafka Server started" not in output
    assert output.count("Error: ") == 1
    last = output.splitlines()[-1]
    assert last.startswith("Error: "), output
    return last


def change(path: Path, old: str, new: str) -> None:
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new))


def test_a_second_process_on_a_folder_is_refused_and_the_first_serves_on(tmp_path: Path) -> None:
    with PykafkaBroker({}, tmp_path) as broker:
        assert broker.process is not None
        assert refused("--data-dir", str(broker.data_dir)) == (
            f"Error: Failed to acquire lock on file .lock in {broker.data_dir}. "
            "A Kafka instance in another process or thread is using this directory: "
            f"{described(broker.process.pid)}."
        )
        assert run_command("topics", "create", "orders", "-b", broker.address).status == 0


def newer_version(data_dir: Path) -> None:
    change(data_dir / "meta.properties", "version=1", "version=2")


def other_node(data_dir: Path) -> None:
    change(data_dir / "meta.properties", "node.id=1", "node.id=5")


def garbage(data_dir: Path) -> None:
    (data_dir / "meta.properties").write_bytes(bytes(range(256)))


def no_identity(data_dir: Path) -> None:
    (data_dir / "orders-0").mkdir()
    (data_dir / "meta.properties").unlink()


@pytest.mark.parametrize(
    ("damage", "what_to_do"),
    [
        (newer_version, "Start the version of the software that wrote it"),
        (other_node, "Check node.id"),
        (garbage, "or restore the file from a backup."),
        (no_identity, "Restore the metadata directory, or run `pykafka-broker format`"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_folder_that_is_not_ours_to_use_is_refused_with_what_to_do(
    data_dir: Path, damage: Callable[[Path], None], what_to_do: str
) -> None:
    damage(data_dir)
    line = refused("--data-dir", str(data_dir))
    assert what_to_do in line
    assert str(data_dir) in line


def test_formatting_beside_a_garbage_folder_is_refused(data_dir: Path, tmp_path: Path) -> None:
    garbage(data_dir)
    both = f"{tmp_path / 'new'},{data_dir}"
    result = run_command("format", "--data-dir", both, "--ignore-formatted")
    assert result.status == 1
    assert result.err.startswith(f"Error: {data_dir}/meta.properties cannot be used: ")


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    line = refused("--data-dir", str(tmp_path / "file" / "data"))
    assert line.startswith(f"Error: Cannot start on the log directories ({tmp_path / 'file' / 'data'}: Not a")


@pytest.fixture
def with_hangup() -> Iterator[None]:
    """A process started now takes SIGHUP, though the tests may run under `nohup`, which ignores it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("with_hangup")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_a_broker_in_order_and_the_next_start_recovers_nothing(
    tmp_path: Path, number: signal.Signals
) -> None:
    with PykafkaBroker({}, tmp_path) as broker:
        assert run_command("topics", "create", "orders", "-b", broker.address).status == 0
        assert broker.process is not None
        broker.process.send_signal(number)
        assert broker.process.wait(120) == 0
        broker.process = None
        assert (broker.data_dir / ".kafka_cleanshutdown").exists()
        broker.start()
        assert not (broker.data_dir / ".kafka_cleanshutdown").exists()
        log = broker.log_file.read_text()
        assert (
            f"Skipping recovery of 1 logs from {broker.data_dir} since clean shutdown file was found" in log
        )

        broker.kill()
        broker.start()
        log = broker.log_file.read_text()
        assert f"Recovering 1 logs from {broker.data_dir} since no clean shutdown file was found" in log
        assert run_command("topics", "list", "-b", broker.address).out == "orders\n"


@pytest.fixture
def small_volume(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    folder = tmp_path / "volume"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a small file system needs rights that this user lacks")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


async def test_a_full_volume_refuses_producers_serves_consumers_and_heals_by_itself(
    small_volume: Path,
) -> None:
    home = Home(files=OsFileSystem(), clock=SystemClock(), data_dir=str(small_volume / "data"))
    async with home.running() as user:
        await user.create_topic("orders")
        ballast = small_volume / "ballast"
        ballast.write_bytes(bytes(1024 * KIB))

        acknowledged: list[bytes | None] = []
        refusals = 0
        while refusals < 5:
            value = b"%06d" % len(acknowledged) + bytes(20 * KIB)
            code = (await user.try_to_produce("orders", value)).error_code
            if code == ErrorCode.NONE:
                acknowledged.append(value)
            else:
                assert code == ErrorCode.KAFKA_STORAGE_ERROR
                refusals += 1
        assert acknowledged
        assert await user.values("orders") == acknowledged

        ballast.unlink()

        assert await user.produce("orders", b"again") == len(acknowledged)
        acknowledged.append(b"again")
        await user.commit("readers", "orders", 1)
    async with home.running() as user:
        assert await user.values("orders") == acknowledged
        assert await user.committed("readers") == {("orders", 0): 1}


async def test_hundreds_of_parked_fetches_are_answered_by_a_stop(tmp_path: Path) -> None:
    home = Home(files=OsFileSystem(), clock=SystemClock(), data_dir=str(tmp_path / "data"))
    broker = home.new_broker()
    await broker.start()
    users = [await User.connect(broker.bootstrap_servers) for _ in range(200)]
    await users[0].create_topic("orders")
    parked = [asyncio.ensure_future(user.fetch("orders", max_wait_ms=60_000)) for user in users]
    await until(lambda: broker.node.broker.purgatory.parked == len(users))
    await broker.stop()
    answers = await asyncio.gather(*parked)
    assert [answer.error_code for answer in answers] == [0] * len(users)
    for user in users:
        await user.close()
