"""A network whose links are cut and slowed down: each host in a network namespace of its own, all of them
behind one router, which is a namespace too.

    with Network((1, 2, 3)) as network:
        subprocess.Popen([*network.inside(1), "server", network.address(1)])
        network.drop(1, 2)      # what 1 sends to 2 is lost; what 2 sends to 1 comes
        network.mend()

The process that made it is a host as well (`OUTSIDE`). Packets are lost as on real networks: whoever sends
learns of it by silence, and TCP repeats them until it gives up, or the link is there again.

Needs Linux, root, `ip` and `tc` (iproute2), `nsenter` and `unshare` (util-linux); `why_not()` says what is
missing. Nothing stays behind: namespaces last as long as the processes in them, and the process that holds
one ends with its parent.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Self

import pytest

#: Two divided networks take as long as all other faults.
IN_LONG_FORM = pytest.mark.skipif(
    int(os.environ.get("TORTURE_ROUNDS", "100")) < 100,
    reason="make torture runs it with 100 rounds",
)
#: The process that makes the network, where the clients are.
OUTSIDE = 250
ROUTER = 254
#: Of `ip rule`, in the order of preference: before the table of the router's own routes.
PREFERENCE = "100"


class NetworkError(Exception):
    """A command about the network failed; the message holds what it said."""


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NetworkError(f"{' '.join(command)}: {done.stderr.strip()}")


def why_not() -> str | None:
    """Why there can be no such network here; None if there can."""
    if missing := [name for name in ("ip", "tc", "nsenter", "unshare") if shutil.which(name) is None]:
        return f"{', '.join(missing)}: not installed"
    try:
        with Network((1,)) as network:
            network.slow(OUTSIDE, 1, 1_000_000)
    except NetworkError as error:
        return str(error)
    return None


class Namespace:
    """A network namespace, held by a process that does nothing."""

    def __init__(self) -> None:
        # It ends when the other end of its standard input is closed, as at the end of this process.
        self._holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() == b"":
            _, said = self._holder.communicate()
            raise NetworkError(said.decode().strip())

    @property
    def pid(self) -> str:
        return str(self._holder.pid)

    @property
    def inside(self) -> list[str]:
        """What to put before a command so that it runs here; its process is then that of the command."""
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net"]

    def run(self, *command: str) -> None:
        run(*self.inside, *command)

    def close(self) -> None:
        self._holder.communicate()


class Network:
    """Made by `with`."""

    def __init__(self, hosts: Collection[int]) -> None:
        self._hosts = hosts
        self._namespaces: dict[int, Namespace] = {}
        self._prefix = ""
        #: The device here, once there is one.
        self._cable = ""
        self._rules: list[tuple[str, ...]] = []
        self._slowed: set[int] = set()

    def address(self, host: int) -> str:
        return f"{self._prefix}.{host}"

    def inside(self, host: int) -> list[str]:
        """What to put before a command so that it runs on this host."""
        return self._namespaces[host].inside

    # -- faults ----------------------------------------------------------------------------------------------

    def drop(self, source: int, target: int, port: int | None = None) -> None:
        """Lose in silence what one host sends to another; with a port, only what goes there. So a server on
        that port is not reached, while the other direction is open for connections.
        """
        self._add_rule(source, target, port, "blackhole")

    def cut(self, links: Iterable[tuple[int, int]]) -> None:
        """Lose in silence what goes from the first to the second host of each pair."""
        for source, target in links:
            self.drop(source, target)

    def refuse(self, source: int, target: int, port: int | None = None) -> None:
        """As `drop`, but the sender is told that there is no way: a new connection fails at once."""
        self._add_rule(source, target, port, "unreachable")

    def slow(self, source: int, target: int, bits_per_s: int) -> None:
        """Let through only so much from one host to another; the rest queues up."""
        router, device = self._router, f"to{target}"
        if target not in self._slowed:
            self._slowed.add(target)
            router.run("tc", "qdisc", "add", "dev", device, "root", "handle", "1:", "htb")
        of_source = f"1:{source:x}"
        rate = ("rate", str(bits_per_s), "quantum", "1514")
        router.run("tc", "class", "add", "dev", device, "parent", "1:", "classid", of_source, "htb", *rate)
        match = ("match", "ip", "src", f"{self.address(source)}/32")
        router.run(
            *("tc", "filter", "add", "dev", device, "parent", "1:", "protocol", "ip", "prio", "1"),
            *("u32", *match, "flowid", of_source),
        )

    def mend(self) -> None:
        """Open all links, at full speed. What TCP has to say again is said when it next tries."""
        while self._rules:
            self._router.run("ip", "rule", "del", *self._rules.pop())
        while self._slowed:
            self._router.run("tc", "qdisc", "del", "dev", f"to{self._slowed.pop()}", "root")

    def _add_rule(self, source: int, target: int, port: int | None, action: str) -> None:
        rule = ["from", self.address(source), "to", self.address(target), "preference", PREFERENCE]
        if port is not None:
            rule += ["ipproto", "tcp", "dport", str(port)]
        self._router.run("ip", "rule", "add", *rule, action)
        self._rules.append((*rule, action))

    # -- making it -------------------------------------------------------------------------------------------

    @property
    def _router(self) -> Namespace:
        return self._namespaces[ROUTER]

    def __enter__(self) -> Self:
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._cable:
            # The kernel takes its time with the rest; another network may want the name of this device now.
            run("ip", "link", "del", self._cable)
        while self._namespaces:
            self._namespaces.popitem()[1].close()

    def _make(self) -> None:
        for host in (*self._hosts, ROUTER):
            self._namespaces[host] = Namespace()
            self._namespaces[host].run("ip", "link", "set", "lo", "up")
        # Whoever may send to whom is said by rules alone.
        self._router.run(
            "sh", "-c", "cd /proc/sys/net/ipv4; echo 1 > ip_forward; echo 0 > conf/all/rp_filter"
        )
        self._prefix = self._plug_in_outside()
        self._connect_router(OUTSIDE)
        for host in self._hosts:
            inside = self._namespaces[host]
            inside.run(*veth("eth0", f"to{host}", self._router))
            inside.run("ip", "address", "add", self.address(host), "dev", "eth0")
            inside.run("ip", "link", "set", "eth0", "up")
            self._connect_router(host)
            router = self.address(ROUTER)
            inside.run("ip", "route", "add", "default", "via", router, "dev", "eth0", "onlink")

    def _plug_in_outside(self) -> str:
        """Plug a cable in here, and take addresses that nothing here uses; their first three numbers."""
        device = f"torture{os.getpid()}"
        run(*veth(device, f"to{OUTSIDE}", self._router))
        self._cable = device
        run("ip", "link", "set", device, "up")
        while True:
            # Private addresses, in a corner that few others use.
            prefix = f"10.{random.randrange(240, 255)}.{random.randrange(256)}"
            with suppress(NetworkError):
                router = ("via", f"{prefix}.{ROUTER}", "dev", device, "onlink")
                run("ip", "route", "add", f"{prefix}.0/24", *router)
                run("ip", "address", "add", f"{prefix}.{OUTSIDE}", "dev", device)
                return prefix

    def _connect_router(self, host: int) -> None:
        """The router's end of a cable, and the route to the host at the other."""
        device = f"to{host}"
        self._router.run("sh", "-c", f"echo 0 > /proc/sys/net/ipv4/conf/{device}/rp_filter")
        self._router.run("ip", "address", "add", self.address(ROUTER), "dev", device)
        self._router.run("ip", "link", "set", device, "up")
        self._router.run("ip", "route", "add", self.address(host), "dev", device)


def veth(device: str, other_end: str, router: Namespace) -> tuple[str, ...]:
    """The command that makes a cable between a device here and one of the router."""
    peer = ("peer", "name", other_end, "netns", router.pid)
    return ("ip", "link", "add", "name", device, "type", "veth", *peer)
