"""The folder of a local cluster: what is written there, and what it tells about the nodes.

`pykafka-broker cluster` runs a process for each of its nodes; node.log, started.json and pid are theirs.
`Cluster` runs them in one process.

    cluster.properties          the id of the cluster and its first voters; written before any node is
                                formatted, so that a start that was cut short goes on with the same ones
    node-1/server.properties    as for `start --config`
    node-1/data/                its log directory
    node-1/node.log             its log, over all starts
    node-1/started.json         what `start --json` prints when the node serves: empty until then
    node-1/pid                  its process; removed by an orderly stop
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from pykafka_broker.local_cluster.layout import HOST, Layout, Ports, fixed_ports, properties

if TYPE_CHECKING:
    from pykafka_broker.config import BrokerConfig

DEFAULT_FOLDER = "pykafka-cluster"


class NoSuchNodeError(LookupError):
    """A cluster has no node of this id; the text names those that it has."""


class ClusterFolder:
    """The folder of a local cluster, there or not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._plan = path / "cluster.properties"

    # -- making it
    # ------------

    def exists(self) -> bool:
        """Whether the cluster has been made, maybe not to its end."""
        return self._plan.exists()

    def create(self, layout: Layout, first_port: int, overrides: Mapping[str, str]) -> None:
        """Write down which nodes there are; `format` prepares their log directories.

        Raises:
            LogDirError: the folder holds something else.
        """
        from pykafka_broker.log.disk.checkpoints import uuid_text
        from pykafka_broker.log.disk.directories import LogDirError

        if self.path.exists() and any(self.path.iterdir()):
            raise LogDirError(f"{self.path} is not empty, and holds no cluster of this kind")
        roles = layout.roles()
        ports = fixed_ports(first_port, list(roles)) if first_port else _free_ports(list(roles))
        voters = ",".join(
            f"{node_id}@{HOST}:{ports[node_id].controller}:{uuid_text(_new_id())}"
            for node_id, kinds in roles.items()
            if "controller" in kinds
        )
        data_dirs = {node_id: str(self.node(node_id) / "data") for node_id in roles}
        for node_id, keys in properties(layout, ports, data_dirs, overrides).items():
            self.node(node_id).mkdir(parents=True)
            _write_properties(self.properties_file(node_id), keys)
        # Written last, under its name at once: a folder with it is complete.
        plan = {"cluster.id": uuid_text(_new_id()), "initial.controllers": voters}
        unfinished = self._plan.with_suffix(".tmp")
        _write_properties(unfinished, plan)
        unfinished.replace(self._plan)

    def check_layout(self, asked: Layout) -> None:
        """Accept the nodes that are asked for.

        Raises:
            LogDirError: the folder holds a cluster of others.
        """
        from pykafka_broker.log.disk.directories import LogDirError

        there = self.layout()
        if asked != there:
            raise LogDirError(
                f"{self.path} holds a cluster of {there.described()}, not of {asked.described()}: "
                "name another folder"
            )

    def format(self) -> None:
        """Format the nodes that are not formatted yet."""
        from pykafka_broker.broker.storage import NewCluster, format_directories
        from pykafka_broker.log.disk.files import OsFileSystem

        plan = _read_properties(self._plan)
        for node_id in self.node_ids():
            config = self.config(node_id)
            new = (
                NewCluster(initial_controllers=plan["initial.controllers"])
                if "controller" in config.process_roles
                else NewCluster()
            )
            format_directories(
                OsFileSystem(), config, now_ms=time.time_ns() // 1_000_000, ignore_formatted=True, new=new
            )

    # -- the nodes
    # ------------

    def node(self, node_id: int) -> Path:
        return self.path / f"node-{node_id}"

    def properties_file(self, node_id: int) -> Path:
        return self.node(node_id) / "server.properties"

    def log_file(self, node_id: int) -> Path:
        return self.node(node_id) / "node.log"

    def started_file(self, node_id: int) -> Path:
        return self.node(node_id) / "started.json"

    def pid_file(self, node_id: int) -> Path:
        return self.node(node_id) / "pid"

    def node_ids(self) -> list[int]:
        """The nodes, in order."""
        names = (
            file.parent.name.removeprefix("node-") for file in self.path.glob("node-*/server.properties")
        )
        return sorted(int(name) for name in names if name.isdecimal())

    def checked(self, node_ids: Iterable[int]) -> list[int]:
        """These nodes, each once.

        Raises:
            NoSuchNodeError: one of them is not here.
        """
        return checked(node_ids, self.node_ids())

    def config(self, node_id: int, overrides: Mapping[str, str] | None = None) -> BrokerConfig:
        """The configuration that a start of the node reads, with these keys set above it.

        Raises:
            ConfigError: it cannot be accepted.
        """
        from pykafka_broker.config.sources import load_config

        return load_config(
            file=self.properties_file(node_id),
            overrides=overrides or {},
            cluster_id=_read_properties(self._plan)["cluster.id"],
        )

    def roles(self, node_id: int) -> list[str]:
        return _read_properties(self.properties_file(node_id))["process.roles"].split(",")

    def layout(self) -> Layout:
        roles = [self.roles(node_id) for node_id in self.node_ids()]
        return Layout(
            combined=sum(len(kinds) == 2 for kinds in roles),
            controllers=roles.count(["controller"]),
            brokers=roles.count(["broker"]),
        )

    def address(self, node_id: int) -> str:
        """Where clients reach the node; of a controller alone, where administration does."""
        listeners = _read_properties(self.properties_file(node_id))["listeners"]
        return listeners.split(",")[0].partition("://")[2]

    def ports(self, node_id: int) -> list[int]:
        """The ports that the node listens on."""
        listeners = _read_properties(self.properties_file(node_id))["listeners"]
        return [int(listener.rpartition(":")[2]) for listener in listeners.split(",")]

    def bootstrap_servers(self) -> str:
        """The addresses of all brokers."""
        return ",".join(self.address(node) for node in self.node_ids() if "broker" in self.roles(node))


def checked(node_ids: Iterable[int], there: Sequence[int]) -> list[int]:
    """These nodes, each once.

    Raises:
        NoSuchNodeError: one of them is not among those that are there.
    """
    asked = list(dict.fromkeys(node_ids))
    for node_id in asked:
        if node_id not in there:
            nodes = ", ".join(map(str, there))
            raise NoSuchNodeError(f"There is no node {node_id}; the cluster has {nodes}.")
    return asked


def _new_id() -> bytes:
    """A random id that does not begin with a dash, which would be taken for an option."""
    import uuid

    while (made := uuid.uuid4().bytes)[0] >> 2 == 0b111110:
        pass
    return made


def _free_ports(nodes: Sequence[int]) -> dict[int, Ports]:
    """Ports that are free now: all are held until the last is found."""
    with ExitStack() as held:

        def port() -> int:
            found: int = held.enter_context(socket.create_server((HOST, 0))).getsockname()[1]
            return found

        return {node_id: Ports(port(), port()) for node_id in nodes}


def _write_properties(path: Path, keys: Mapping[str, str]) -> None:
    import javaproperties

    path.write_text("".join(f"{javaproperties.join_key_value(key, value)}\n" for key, value in keys.items()))


def _read_properties(path: Path) -> dict[str, str]:
    from pykafka_broker.config.properties_file import read_properties

    return read_properties(path)
