"""The folder of a local cluster: what is written there, and what it tells about the nodes.

`pykafka-broker cluster` runs a process for each of its nodes; node.log, started.json and pid are theirs.
`Cluster` runs them in one process.

    cluster.properties          the id of the cluster and its first voters; written before any node is
                                formatted, so that a start that was cut short goes on with the same ones;
                                `formatted`, once all nodes are: a later unformatted node has lost its
                                directory
    node-1/server.properties    as for `start --config`
    node-1/data/                its log directory
    node-1/node.log             its log, over all starts
    node-1/started.json         what `start --json` prints when the node serves: empty until then
    node-1/pid                  its process; removed by an orderly stop
"""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pykafka_broker.local_cluster.layout import (
    AUTO_JOIN,
    HOST,
    MOST_NODES,
    ROLES,
    Layout,
    Ports,
    fixed_ports,
    properties,
)

if TYPE_CHECKING:
    from pykafka_broker.config import BrokerConfig

DEFAULT_FOLDER = "pykafka-cluster"
#: The key in cluster.properties.
FORMATTED = "formatted"


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
        """Whether the cluster has been made, at least in part."""
        return self._plan.exists()

    def create(self, layout: Layout, first_port: int, overrides: Mapping[str, str]) -> None:
        """Write down which nodes there are; `format` prepares their log directories.

        Raises:
            LogDirError: the folder holds something else.
        """
        from pykafka_broker.log.disk.directories import LogDirError
        from pykafka_broker.protocol.fields import uuid_text

        if self.path.exists() and any(self.path.iterdir()):
            raise LogDirError(f"{self.path} is not empty, and holds no cluster of this kind")
        roles = layout.roles()
        ports = fixed_ports(first_port, list(roles)) if first_port else _free_ports(roles)
        voters = ",".join(
            f"{node_id}@{HOST}:{ports[node_id].controller}:{uuid_text(_new_id())}"
            for node_id, kinds in roles.items()
            if "controller" in kinds
        )
        data_dirs = {node_id: str(self.node(node_id) / "data") for node_id in roles}
        for node_id, keys in properties(layout, ports, data_dirs, overrides).items():
            self.node(node_id).mkdir(parents=True)
            _write(self.properties_file(node_id), keys)
        # Written last, under its name at once: a folder with it is complete.
        _write(self._plan, {"cluster.id": uuid_text(_new_id()), "initial.controllers": voters})

    def check_layout(self, asked: Layout) -> None:
        """Check that the cluster has the nodes that are asked for.

        Raises:
            LogDirError: the folder holds a cluster of other nodes.
        """
        from pykafka_broker.log.disk.directories import LogDirError

        there = self.layout()
        if asked != there:
            raise LogDirError(
                f"{self.path} holds a cluster of {there.described()}, not of {asked.described()}: "
                "name another folder"
            )

    def add_node(self, roles: Collection[str] | None = None) -> int:
        """Add a node with these roles, or with those of the last node, formatted for this cluster. It has the
        keys of the last node with the same roles, or of the last node of all, and the next free ports.

        Raises:
            LogDirError: the cluster has as many nodes as it may have.
            StorageFormatError, LogDirError: as `format`.
        """
        from pykafka_broker.log.disk.directories import LogDirError

        self.format()
        there = self.node_ids()
        if len(there) >= MOST_NODES:
            raise LogDirError(f"{self.path} holds {len(there)} nodes, and no more can be added")
        kinds = [role for role in ROLES if role in (roles or self.roles(there[-1]))]
        # The node whose keys the new one gets comes last.
        there.sort(key=lambda one: (set(self.roles(one)) == set(kinds), one))
        keys = _read_properties(self.properties_file(there[-1]))
        taken = {port for one in there for port in self.ports(one)}
        listeners = []
        for role in kinds:
            with_role = [one for one in there if role in self.roles(one)]
            for listener in _listeners(_read_properties(self.properties_file(with_role[-1])), role):
                address, _, port = listener.rpartition(":")
                taken.add(new := _next_port(int(port), taken))
                listeners.append(f"{address}:{new}")
        node_id = max(there) + 1
        keys |= {
            "process.roles": ",".join(kinds),
            "node.id": str(node_id),
            "listeners": ",".join(listeners),
            "log.dirs": str(self.node(node_id) / "data"),
        }
        if "controller" in kinds:
            keys.setdefault(AUTO_JOIN, "true")
        else:
            keys.pop(AUTO_JOIN, None)
        # An interrupted call may have left the folder without keys.
        self.node(node_id).mkdir(exist_ok=True)
        _write(self.properties_file(node_id), keys)
        _format(self.config(node_id), None)
        return node_id

    def format(self, node_ids: Collection[int] | None = None) -> list[int]:
        """Format those of these nodes (all by default) that are not formatted; return those that have lost
        their directories.

        At first all nodes are formatted, controllers as the first voters. A controller that is formatted
        again has forgotten its acknowledgements and votes. So it is a new voter: it joins with the id of its
        new directory once the other controllers have elected a leader.

        Raises:
            StorageFormatError: a directory belongs to something else.
            LogDirError: too many controllers have lost their directories for the others to elect a leader.
        """
        plan = _read_properties(self._plan)
        configs = {node_id: self.config(node_id) for node_id in self.node_ids()}
        empty = [node_id for node_id, config in configs.items() if not _is_formatted(config)]
        # If all directories are gone, the cluster begins anew.
        is_first = len(empty) == len(configs) or not (FORMATTED in plan or _has_been_started(configs))
        if not is_first:
            self._check_majority(empty)
        wanted = [node_id for node_id in configs if is_first or node_ids is None or node_id in node_ids]
        lost = [] if is_first else [node_id for node_id in wanted if node_id in empty]
        for node_id in lost:
            if "controller" in self.roles(node_id):
                self._let_join(node_id)
        for node_id in wanted:
            _format(configs[node_id], None if node_id in lost else plan["initial.controllers"])
        if FORMATTED not in plan:
            _write(self._plan, {**plan, FORMATTED: "true"})
        return lost

    def _check_majority(self, lost: Collection[int]) -> None:
        """Check that a majority of the controllers still has its directories.

        Raises:
            LogDirError: no majority of the controllers is left.
        """
        from pykafka_broker.log.disk.directories import LogDirError

        controllers = [node_id for node_id in self.node_ids() if "controller" in self.roles(node_id)]
        gone = [node_id for node_id in controllers if node_id in lost]
        if gone and 2 * len(gone) >= len(controllers):
            raise LogDirError(
                f"The directories of {_listed(gone)} are empty, and the metadata is lost with them: it takes "
                f"more than half of the {len(controllers)} controllers to know what was decided. Put the "
                "directories back, or begin a new cluster in another folder"
            )

    def _let_join(self, node_id: int) -> None:
        """Set `controller.quorum.auto.join.enable`, which folders of earlier versions lack."""
        file = self.properties_file(node_id)
        if AUTO_JOIN not in _read_properties(file):
            with file.open("a") as keys:
                keys.write(f"\n{AUTO_JOIN}=true\n")

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
            cluster_id=self.cluster_id,
        )

    @property
    def cluster_id(self) -> str:
        return _read_properties(self._plan)["cluster.id"]

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

    def controller_address(self, node_id: int) -> str:
        """Where the controller of the node listens, the last of its listeners."""
        listeners = _read_properties(self.properties_file(node_id))["listeners"]
        return listeners.rpartition("://")[2]

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


def _is_formatted(config: BrokerConfig) -> bool:
    from pykafka_broker.log.disk.files import OsFileSystem
    from pykafka_broker.raft.format import is_formatted

    return is_formatted(OsFileSystem(), config.metadata_log_dir)


def _has_been_started(configs: Mapping[int, BrokerConfig]) -> bool:
    """Whether one of the nodes has been started: a start makes the node's metadata log."""
    from pykafka_broker.raft.format import METADATA_FOLDER

    return any(
        any(Path(config.metadata_log_dir, METADATA_FOLDER).glob("*.log")) for config in configs.values()
    )


def _format(config: BrokerConfig, first_voters: str | None) -> None:
    """Format a node; a controller as one of the first voters, or as one that joins later."""
    from pykafka_broker.broker.formatting import NewCluster, format_directories
    from pykafka_broker.log.disk.files import OsFileSystem

    new = NewCluster()
    if "controller" in config.process_roles:
        new = NewCluster(initial_controllers=first_voters, no_initial_controllers=first_voters is None)
    now_ms = time.time_ns() // 1_000_000
    format_directories(OsFileSystem(), config, now_ms=now_ms, ignore_formatted=True, new=new)


def _listed(node_ids: Sequence[int]) -> str:
    return f"{'node' if len(node_ids) == 1 else 'nodes'} {', '.join(map(str, node_ids))}"


def _listeners(keys: Mapping[str, str], role: str) -> list[str]:
    """Those of a node's listeners that it has in this role."""
    of_controllers = keys["controller.listener.names"].split(",")
    return [
        listener
        for listener in keys["listeners"].split(",")
        if (listener.partition("://")[0] in of_controllers) == (role == "controller")
    ]


def _new_id() -> bytes:
    """A random id that does not begin with a dash, which would be taken for an option."""
    import uuid

    while (made := uuid.uuid4().bytes)[0] >> 2 == 0b111110:
        pass
    return made


def _free_ports(nodes: Iterable[int]) -> dict[int, Ports]:
    from pykafka_broker.local_cluster.free_ports import free_port

    return {node_id: Ports(free_port(), free_port()) for node_id in nodes}


def _next_port(after: int, taken: Collection[int]) -> int:
    """The next port that neither a node of the cluster nor another process has."""
    for port in range(after + 1, 65_536):
        if port not in taken:
            with suppress(OSError), socket.create_server((HOST, port)):
                return port
    raise OSError(errno.EADDRINUSE, f"no port above {after} is free")


def _write(path: Path, keys: Mapping[str, str]) -> None:
    """Write a whole file of properties, or none."""
    import javaproperties

    from pykafka_broker.log.disk.files import OsFileSystem

    text = "".join(f"{javaproperties.join_key_value(key, value)}\n" for key, value in keys.items())
    OsFileSystem().replace_file(str(path), text.encode(), sync=True)


def _read_properties(path: Path) -> dict[str, str]:
    from pykafka_broker.config.properties_file import read_properties

    return read_properties(path)
