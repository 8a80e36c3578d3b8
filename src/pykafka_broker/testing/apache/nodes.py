"""The nodes of one cluster as processes, each Apache Kafka's or ours: controllers, brokers, or both in one.

    with Nodes(folder, {1: "apache", 2: "apache", 3: "ours"}) as nodes:     # three voters, all started
        nodes[nodes.leader()].kill()
        ...
        nodes.add(11, "ours", roles="broker").start()

Both kinds read the same server.properties and take the same options when they format, so that a node may
change its kind while it is stopped (`software`). Voters are fixed by `controller.quorum.voters`, or written
in the log (KIP-853) where `dynamic` is set.
"""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Literal, Self

from pykafka_broker.client.blocking import BlockingConnection
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.client.core.connection import CLIENT, ClientSecurity, Identity, check
from pykafka_broker.log.disk.names import METADATA_TOPIC
from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.protocol.messages import describe_quorum as m
from pykafka_broker.protocol.messages.describe_acls import DescribeAclsRequest
from pykafka_broker.testing.apache.broker import CLUSTER_ID
from pykafka_broker.testing.apache.tools import SHORT_LIVED, command, run_tool
from pykafka_broker.testing.processes import BrokerError, BrokerProcess, environment, free_port

Software = Literal["apache", "ours"]
Roles = Literal["controller", "broker", "broker,controller"]

#: Small, as up to three of them run beside each other.
HEAP = "192m"
PATIENCE_S = 60.0
#: Any type of resources and of patterns, any operation and any permission.
ANY = 1
EVERY_ACL = DescribeAclsRequest(
    resource_type_filter=ANY,
    resource_name_filter=None,
    pattern_type_filter=ANY,
    principal_filter=None,
    host_filter=None,
    operation=ANY,
    permission_type=ANY,
)

#: Small quorums on one machine: brokers and their topics need no other node, and sessions end soon.
PROPERTIES = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    # A part of the heap; the default is 128 MiB.
    "log.cleaner.dedupe.buffer.size": "2097152",
}


def directory_id() -> str:
    """A random directory id, as `kafka-storage random-uuid` prints one."""
    while True:
        text = uuid_text(uuid.uuid4().bytes)
        if not text.startswith("-"):  # tools would take a dash for an option
            return text


class Node(BrokerProcess):
    """One node of a cluster. `format_options` are those of `kafka-storage format` about its quorum."""

    name = "node"
    start_timeout_s = 60.0
    #: For Apache Kafka: a small heap, and compiled for a short life. A measurement of its speed sets others.
    jvm_options: tuple[str, ...] = (*SHORT_LIVED, f"-Xmx{HEAP}")
    #: The user as whom `connection` and `describe_quorum` ask.
    identity: Identity = CLIENT

    def __init__(
        self,
        node_id: int,
        software: Software,
        roles: Roles,
        *,
        controller_port: int,
        properties: Mapping[str, str],
        folder: Path,
        format_options: tuple[str, ...] = (),
        host: str = "127.0.0.1",
    ) -> None:
        super().__init__(properties, folder)
        self.host = host
        self.node_id = node_id
        #: May be changed while the node is stopped.
        self.software: Software = software
        self.roles = roles
        self.format_options = format_options
        self.controller_port = controller_port
        if not self.is_broker:
            self.port = controller_port

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    @property
    def controller_address(self) -> str:
        return f"{self.host}:{self.controller_port}"

    @property
    def properties_file(self) -> Path:
        return self.folder / "server.properties"

    @property
    def metadata_folder(self) -> Path:
        return self.data_dir / f"{METADATA_TOPIC}-0"

    def prepare(self) -> None:
        """Write server.properties, and format the folder before the first start."""
        super().prepare()
        listeners = [f"PLAINTEXT://{self.address}"] * self.is_broker
        listeners += [f"CONTROLLER://{self.controller_address}"] * self.is_controller
        settings = {
            "process.roles": self.roles,
            "node.id": str(self.node_id),
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(self.data_dir),
            **PROPERTIES,
            **self.properties,
        }
        self.properties_file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        if not (self.data_dir / "meta.properties").exists():
            self.format()

    def format(self) -> None:
        """Format the folder with the tool of its own kind."""
        options = ("-t", CLUSTER_ID, "-c", str(self.properties_file), *self.format_options)
        if self.software == "apache":
            run_tool("kafka.tools.StorageTool", "format", *options)
            return
        done = subprocess.run(
            [sys.executable, "-m", "pykafka_broker", "format", *options],
            capture_output=True,
            env=environment(),
            check=False,
        )
        if done.returncode:
            raise BrokerError(f"node {self.node_id} is not formatted: {done.stderr.decode(errors='replace')}")

    def command(self) -> list[str]:
        if self.software == "apache":
            return command("kafka.Kafka", str(self.properties_file), jvm_options=self.jvm_options)
        return [sys.executable, "-m", "pykafka_broker", "start", "--config", str(self.properties_file)]

    def connection(self) -> BlockingConnection:
        """A connection to the address of this broker. Raises as `BlockingConnection`."""
        return BlockingConnection(parse_address(self.address), identity=self.identity)

    def describe_quorum(self) -> m.DescribeQuorumResponsePartitionData | None:
        """The quorum as this controller describes it; None unless it leads."""
        partition = m.DescribeQuorumRequestPartitionData(partition_index=0)
        topic = m.DescribeQuorumRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
        try:
            security = (self.identity.security or ClientSecurity())._replace(tls=self.tls)
            identity = Identity(security=security)
            address = parse_address(self.controller_address)
            with closing(BlockingConnection(address, identity=identity)) as connection:
                answer = connection.send(m.DescribeQuorumRequest(topics=[topic]))
        except (OSError, ProtocolError):
            return None
        if answer.error_code:
            return None
        [described] = answer.topics[0].partitions
        return None if described.error_code else described

    def lose_disk(self) -> None:
        """Empty its folder, as a new disk is. The next start formats it, with another directory id where the
        voters are in the log.
        """
        assert self.process is None, "the node is running"
        self.data_dir.rename(self.folder / f"lost-{time.monotonic_ns()}")
        if self.format_options:
            self.format_options = ("--no-initial-controllers",)


class Nodes:
    """The nodes of one cluster by their ids. Those that the constructor names are controllers and voters."""

    def __init__(
        self,
        folder: Path,
        voters: Mapping[int, Software],
        *,
        dynamic: bool = False,
        roles: Roles = "controller",
        properties: Mapping[str, str] | None = None,
        node: type[Node] = Node,
        hosts: Mapping[int, str] | None = None,
    ) -> None:
        """`hosts` has the addresses of those that are not on 127.0.0.1."""
        self._folder = folder
        self._dynamic = dynamic
        ports = {node_id: free_port() for node_id in voters}
        hosts = {**dict.fromkeys(voters, "127.0.0.1"), **(hosts or {})}
        addresses = {node_id: f"{hosts[node_id]}:{port}" for node_id, port in ports.items()}
        options: tuple[str, ...]
        self._properties = dict(properties or {})
        if dynamic:
            options = ("--standalone",) if len(voters) == 1 else initial_controllers(addresses)
        else:
            options = ()
            named = (f"{node_id}@{address}" for node_id, address in addresses.items())
            self._properties["controller.quorum.voters"] = ",".join(named)
        self._nodes = {
            node_id: node(
                node_id,
                software,
                roles,
                controller_port=ports[node_id],
                properties=self._properties,
                folder=folder / f"node-{node_id}",
                format_options=options,
                host=hosts[node_id],
            )
            for node_id, software in voters.items()
        }
        self._tell_controllers()

    def _tell_controllers(self) -> None:
        """Give each node, for its next start, the addresses of all controllers."""
        if self._dynamic:
            servers = ",".join(node.controller_address for node in self if node.is_controller)
            for node in self:
                node.properties["controller.quorum.bootstrap.servers"] = servers

    def add(
        self,
        node_id: int,
        software: Software,
        *,
        roles: Roles = "controller",
        properties: Mapping[str, str] | None = None,
    ) -> Node:
        """A node that is not started yet, and no voter."""
        node = Node(
            node_id,
            software,
            roles,
            controller_port=free_port(),
            properties={**self._properties, **(properties or {})},
            folder=self._folder / f"node-{node_id}",
            format_options=("--no-initial-controllers",) if self._dynamic and "controller" in roles else (),
        )
        self._nodes[node_id] = node
        self._tell_controllers()
        return node

    def __getitem__(self, node_id: int) -> Node:
        return self._nodes[node_id]

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def start(self, *node_ids: int) -> None:
        """Start these nodes beside each other, or all."""
        wanted = [self[node_id] for node_id in node_ids] or list(self)
        with ThreadPoolExecutor(len(wanted)) as starts:
            for started in [starts.submit(node.start) for node in wanted]:
                started.result()

    def quorum(
        self, is_so: Callable[[m.DescribeQuorumResponsePartitionData], object] = bool
    ) -> m.DescribeQuorumResponsePartitionData:
        """The quorum as its leader describes it, once there is a leader and `is_so(quorum)` is true."""
        described: m.DescribeQuorumResponsePartitionData | None = None

        def found() -> bool:
            nonlocal described
            for node in self:
                if node.is_running and node.is_controller:
                    described = node.describe_quorum() or described
            return described is not None and bool(is_so(described))

        self.comes(found, "the quorum does not come to this")
        assert described is not None
        return described

    def leader(self) -> int:
        """The id of the leader that a majority follows."""
        return self.quorum(lambda described: described.high_watermark >= 0).leader_id

    def comes(self, is_so: Callable[[], object], what: str | Callable[[], str]) -> None:
        """Wait until `is_so()`.

        Raises BrokerError after `PATIENCE_S`, which says `what` did not happen, with the ends of all logs.
        """
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            if time.monotonic() > deadline:
                logs = "\n".join(f"--- node {node.node_id}\n{node.log_tail()}" for node in self)
                raise BrokerError(f"{what if isinstance(what, str) else what()}\n{logs}")
            time.sleep(0.05)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.kill()

    def kill(self) -> None:
        """Kill all of them: a test that examines a stop stops nodes itself."""
        for node in self:
            node.kill()


def initial_controllers(addresses: Mapping[int, str]) -> tuple[str, str]:
    """The option that formats these controllers as the first voters, each with a new directory id."""
    voters = (f"{node_id}@{address}:{directory_id()}" for node_id, address in addresses.items())
    return ("--initial-controllers", ",".join(voters))


def acl_count(connection: BlockingConnection) -> int:
    """The number of ACLs that a node has.

    Raises:
        KafkaError: the user of the connection may not describe them.
    """
    answer = connection.send(EVERY_ACL)
    check(answer.error_code, answer.error_message)
    return sum(len(resource.acls) for resource in answer.resources)
