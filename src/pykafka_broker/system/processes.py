"""Other processes by id and command: which one holds a port or a lock that a starting broker needs.

On Linux all processes of the same user are found (for root, of every user), on macOS those that lsof(8)
shows, elsewhere none.

Descriptions may be logged, so they have only the program and, for a broker, the options in `SHOWN_OPTIONS`:
other arguments may hold passwords.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address

from pykafka_broker.system.named_tuple import NamedTuple

#: The longest command that is shown in full.
SHOWN_COMMAND = 100
#: The options of `start` whose values are shown, with their short forms.
SHOWN_OPTIONS = {"-c": "--config", "-d": "--data-dir"}

_LISTEN = "0A"
#: A flag of a process in `/proc/PID/stat`.
_PF_EXITING = 4


class StartCommand(NamedTuple):
    """A process that runs `pykafka-broker start`.

    `arguments` follow the word `start`. Environment and working directory are empty where they cannot be
    read. All three may hold secrets.
    """

    process_id: int
    arguments: list[str]
    environ: Mapping[str, str]
    directory: str


def described(process_id: int) -> str:
    """`process 4711 (java kafka.Kafka server.properties)`, without unknown and secret parts."""
    command = "" if process_id <= 0 else _command_of(process_id)
    if process_id == os.getpid():
        return f"this very process ({process_id})"
    if process_id <= 0:
        return "another process"
    return f"process {process_id} ({command})" if command else f"process {process_id}"


def listening_on(address: str, port: int) -> int | None:
    """The process that listens on `address` and `port`; None if unknown."""
    if sys.platform != "linux":
        found = _output_of("lsof", "-nP", "-t", f"-iTCP:{port}", "-sTCP:LISTEN").split()
        return int(found[0]) if found else None
    inodes = _listening_inodes(ip_address(address), port)
    return _process_with_sockets(inodes) if inodes else None


def broker_processes() -> Iterator[StartCommand]:
    """The brokers of this kind that run on this machine, serving or not."""
    for process_id in _process_ids():
        _, words = _of_broker(_arguments_of(process_id))
        if words[:1] == ["start"]:
            yield StartCommand(process_id, words[1:], _environ_of(process_id), _directory_of(process_id))


def command_line(process_id: int) -> str:
    """The command that a process runs, including secrets; empty if there is no such process."""
    return " ".join(_arguments_of(process_id))


def disk_bytes() -> tuple[int, int] | None:
    """The bytes that this process has had read from disks, and written to them; None if unknown."""
    try:
        with open("/proc/self/io") as file:
            told = dict(line.split(": ") for line in file.read().splitlines())
        return int(told["read_bytes"]), int(told["write_bytes"])
    except (OSError, KeyError, ValueError):
        return None


def waited_for_core_ns(schedstat: str = "/proc/thread-self/schedstat") -> int:
    """The nanoseconds for which this thread could have run but had no core; 0 if the system does not tell."""
    try:
        with open(schedstat) as file:
            return int(file.read().split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def is_paused(process_id: int) -> bool:
    """Whether a process is stopped by a signal such as SIGSTOP."""
    try:
        with open(f"/proc/{process_id}/stat") as file:
            # The name before the state is in parentheses, and may have any character.
            return file.read().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return _output_of("ps", "-o", "state=", "-p", str(process_id)).strip().startswith("T")


def is_ending(process_id: int) -> bool:
    """Whether a process is exiting: on Linux it has lost its command line, but its threads still hold its
    sockets.
    """
    if sys.platform != "linux":
        return False
    import select

    try:
        with open(f"/proc/{process_id}/stat") as file:
            flags = int(file.read().rpartition(")")[2].split()[6])
        descriptor = os.pidfd_open(process_id)
    except OSError:
        return False
    try:
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        return bool(flags & _PF_EXITING) and not ended.poll(0)
    finally:
        os.close(descriptor)


def _command_of(process_id: int) -> str:
    command = " ".join(_harmless(_arguments_of(process_id)))
    if len(command) <= SHOWN_COMMAND:
        return command
    # The program is at the beginning, its configuration file at the end.
    return f"{command[: SHOWN_COMMAND // 2]} ... {command[-SHOWN_COMMAND // 2 :]}"


def _harmless(arguments: list[str]) -> Iterable[str]:
    """The program and, for a broker, the arguments that cannot hold a secret."""
    if not arguments:
        return
    program, *rest = arguments
    # A process that has set its own title has only one argument.
    yield program if rest else program.partition(" ")[0]
    if "kafka.Kafka" in rest:
        at = rest.index("kafka.Kafka")
        yield from rest[at : at + 2]
        return
    began, words = _of_broker(arguments)
    yield from (*began, *words[:1])
    yield from _shown_options(words[1:])


def _of_broker(arguments: list[str]) -> tuple[list[str], list[str]]:
    """What runs a command of this package, and the words of the command; nothing of another program."""
    for at, word in enumerate(arguments[1:], start=1):
        if word == "pykafka_broker" and arguments[at - 1] == "-m":
            return ["-m", word], arguments[at + 1 :]
        if os.path.basename(word) == "pykafka-broker":
            return [word], arguments[at + 1 :]
    return [], []


def _shown_options(arguments: list[str]) -> Iterable[str]:
    words = iter(arguments)
    for word in words:
        option, equals, value = word.partition("=")
        if SHOWN_OPTIONS.get(option, option) in SHOWN_OPTIONS.values():
            yield from (option, value if equals else next(words, ""))
        elif word in ("-o", "--override"):
            next(words, "")


def _arguments_of(process_id: int) -> list[str]:
    try:
        with open(f"/proc/{process_id}/cmdline", "rb") as file:
            content = file.read().decode(errors="replace").rstrip("\0")
            return content.split("\0") if content else []
    except OSError:
        return _output_of("ps", "-ww", "-o", "command=", "-p", str(process_id)).split()


def _process_ids() -> list[int]:
    if sys.platform != "linux":
        return [int(word) for word in _output_of("ps", "-axo", "pid=").split()]
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _environ_of(process_id: int) -> dict[str, str]:
    try:
        with open(f"/proc/{process_id}/environ", "rb") as file:
            entries = file.read().decode(errors="replace").split("\0")
    except OSError:
        return {}
    return {name: value for name, equals, value in (entry.partition("=") for entry in entries) if equals}


def _directory_of(process_id: int) -> str:
    try:
        return os.readlink(f"/proc/{process_id}/cwd")
    except OSError:
        return ""


def _output_of(*command: str) -> str:
    import subprocess

    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _listening_inodes(wanted: IPv4Address | IPv6Address, port: int) -> set[str]:
    """The sockets of this machine that listen on `port` at the wanted address or at a wildcard address."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as file:
                lines = file.read().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            _, local, _, state, *rest = line.split()
            host, _, port_digits = local.partition(":")
            if state != _LISTEN or int(port_digits, 16) != port:
                continue
            bound = _address(host)
            if wanted.is_unspecified or bound.is_unspecified or bound == wanted:
                inodes.add(rest[5])
    return inodes


def _address(digits: str) -> IPv4Address | IPv6Address:
    """An address of /proc/net/tcp: words of four bytes, each in the machine's own order."""
    words = [bytes.fromhex(digits[i : i + 8]) for i in range(0, len(digits), 8)]
    packed = b"".join(word[::-1] if sys.byteorder == "little" else word for word in words)
    if len(packed) == 4:
        return IPv4Address(packed)
    address = IPv6Address(packed)
    return address.ipv4_mapped or address


def _process_with_sockets(inodes: set[str]) -> int | None:
    wanted = {f"socket:[{inode}]" for inode in inodes}
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        try:
            with os.scandir(f"/proc/{name}/fd") as descriptors:
                for descriptor in descriptors:
                    if os.readlink(descriptor.path) in wanted:
                        return int(name)
        except OSError:  # gone meanwhile, or another user's
            continue
    return None
