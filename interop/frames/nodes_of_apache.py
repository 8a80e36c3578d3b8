"""`python -m interop.frames.nodes_of_apache`: what nodes of Apache Kafka say to each other.

Three controllers and two brokers come, go and lose their disks. `tests/raft/frames` keeps what they said, of
each API a few exchanges that differ in which of their fields are set.
"""

from __future__ import annotations

import tempfile
import textwrap
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from interop.frames.recorder import Exchange, Recorder
from pykafka_broker.client.blocking import BlockingConnection
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.log.disk.checkpoints import decode_meta_properties
from pykafka_broker.log.disk.names import METADATA_TOPIC
from pykafka_broker.protocol.compile import decode
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.protocol.messages import add_raft_voter as adding
from pykafka_broker.protocol.messages import describe_quorum as describing
from pykafka_broker.protocol.messages import module_name, request_type, response_type
from pykafka_broker.protocol.messages import remove_raft_voter as removing
from pykafka_broker.protocol.messages.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from pykafka_broker.testing.apache.broker import CLUSTER_ID
from pykafka_broker.testing.apache.nodes import Node, Nodes
from pykafka_broker.testing.processes import free_port

FRAMES = Path(__file__).parents[2] / "tests" / "raft" / "frames"
#: What nodes ask each other: the quorum, changes of its voters, and brokers at the controller.
KEYS = (1, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 80, 81, 82)
#: No more of one API are kept, and none with larger frames.
KEPT = 10
LARGEST = 3_000
TOPIC = "kept"


class Kept:
    """The exchanges to keep, by their kinds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.exchanges: dict[int, dict[object, Exchange]] = {key: {} for key in KEYS}

    def __call__(self, exchange: Exchange) -> None:
        kinds = self.exchanges.get(exchange.api_key)
        if kinds is None or max(len(exchange.request), len(exchange.response)) > LARGEST:
            return
        kind = (exchange.version, *(shape(message) for message in messages(exchange)))
        with self._lock:
            if kind not in kinds and len(kinds) < KEPT:
                kinds[kind] = exchange
                print(
                    f"{module_name(exchange.api_key)} v{exchange.version}: {messages(exchange)}", flush=True
                )

    def store(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        for api_key, kinds in self.exchanges.items():
            name = module_name(api_key)
            text = [f"# {name}: between nodes of Apache Kafka 4.3.1, by interop/frames"]
            for exchange in kinds.values():
                for what, data in (("request", exchange.request), ("response", exchange.response)):
                    text += ["", f"{what} v{exchange.version}", *textwrap.wrap(data.hex(), 100)]
            if kinds:
                (folder / f"{name}.txt").write_text("\n".join(text) + "\n")
            else:
                print(f"nothing of {name}")


def messages(exchange: Exchange) -> tuple[Any, Any]:
    """The request and the response."""
    key, version = exchange.api_key, exchange.version
    _, start = decode(RequestHeader, request_header_version(key, version), exchange.request)
    request, _ = decode(request_type(key), version, exchange.request, start)
    _, start = decode(ResponseHeader, response_header_version(key, version), exchange.response)
    return request, decode(response_type(key), version, exchange.response, start)[0]


def shape(value: Any) -> object:
    """Which fields of a message are set, however; an error counts by its code."""
    if hasattr(value, "__schema__"):
        return tuple(
            getattr(value, field.name) if field.name == "error_code" else shape(getattr(value, field.name))
            for field in schema_of(value).fields
        )
    if isinstance(value, list):
        return tuple(sorted({repr(shape(element)) for element in value}))
    if isinstance(value, int):
        return "negative" if value < 0 else bool(value)
    return bool(value)


def main() -> None:
    kept = Kept()
    with Recorder(kept) as recorder, tempfile.TemporaryDirectory(prefix="frames-") as folder:
        play(Path(folder), recorder)
        kept.store(FRAMES)


def behind_proxy(node: Node, recorder: Recorder) -> None:
    """Have the others reach the node through a proxy at the port that they know."""
    known, node.controller_port = node.controller_port, free_port()
    if not node.is_broker:
        node.port = node.controller_port
    recorder.proxy(known, node.controller_port)
    advertised = [f"PLAINTEXT://{node.address}"] * node.is_broker
    node.properties["advertised.listeners"] = ",".join([*advertised, f"CONTROLLER://127.0.0.1:{known}"])


def play(folder: Path, recorder: Recorder) -> None:
    nodes = Nodes(
        folder,
        {1: "apache", 2: "apache", 3: "apache"},
        dynamic=True,
        properties={
            "metadata.log.max.record.bytes.between.snapshots": "1000",
            "default.replication.factor": "2",
            "replica.lag.time.max.ms": "2000",
        },
    )
    for node in nodes:
        behind_proxy(node, recorder)
    with nodes:
        print("leader", nodes.leader(), flush=True)
        two_directories = f"{folder}/node-11/data,{folder}/node-11/more"
        first = nodes.add(11, "apache", roles="broker", properties={"log.dirs": two_directories})
        second = nodes.add(12, "apache", roles="broker")
        nodes.start(11, 12)
        admin = AdminClient({"bootstrap.servers": first.address})
        for made in admin.create_topics([NewTopic(TOPIC, 2, 2)]).values():
            made.result()
        producer = Producer({"bootstrap.servers": first.address, "enable.idempotence": True})
        producer.produce(TOPIC, b"one")
        producer.flush()
        # The in-sync replicas shrink and grow again.
        second.kill()
        nodes.comes(lambda: in_sync(admin) == 1, "the dead broker stays in sync")
        second.start()
        nodes.comes(lambda: in_sync(admin) == 2, "the broker does not come back")
        second.stop()
        # The leader is killed, then another stops in order; one comes back with an empty disk.
        killed = nodes.leader()
        nodes[killed].kill()
        print("leader", nodes.leader(), flush=True)
        lost = nodes[killed]
        change_voters(nodes, lost, recorder)
        stopped = nodes.leader()
        nodes[stopped].stop()
        print("leader", nodes.leader(), flush=True)
        moved = nodes[stopped]
        move(moved, recorder)
        moved.start()
        port = int(moved.properties["advertised.listeners"].rsplit(":", 1)[1])
        nodes.comes(lambda: port in voter_ports(nodes), "the voter does not tell its new address")


def in_sync(admin: AdminClient) -> int:
    partitions = admin.list_topics(TOPIC).topics[TOPIC].partitions.values()
    return min(len(partition.isrs) for partition in partitions)


def move(node: Node, recorder: Recorder) -> None:
    """Give the node another address, which it tells the leader in UpdateRaftVoter."""
    port = free_port()
    recorder.proxy(port, node.controller_port)
    node.properties["advertised.listeners"] = f"CONTROLLER://127.0.0.1:{port}"


def voter_ports(nodes: Nodes) -> set[int]:
    leader = nodes[nodes.leader()]
    with closing(BlockingConnection(parse_address(leader.controller_address))) as connection:
        partition = describing.DescribeQuorumRequestPartitionData(partition_index=0)
        topic = describing.DescribeQuorumRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
        answer = connection.send(describing.DescribeQuorumRequest(topics=[topic]))
        return {listener.port for node in answer.nodes for listener in node.listeners}


def change_voters(nodes: Nodes, lost: Node, recorder: Recorder) -> None:
    """The disk of a voter is lost: its old self is removed, its new one added."""
    known = int(lost.properties["advertised.listeners"].rsplit(":", 1)[1])
    leader = nodes.leader()
    [voter] = [v for v in nodes.quorum().current_voters if v.replica_id == lost.node_id]
    lost.lose_disk()
    lost.start()
    ask = removing.RemoveRaftVoterRequest(
        cluster_id=CLUSTER_ID, voter_id=lost.node_id, voter_directory_id=voter.replica_directory_id
    )
    address = nodes[leader].properties["advertised.listeners"].removeprefix("CONTROLLER://")
    with closing(BlockingConnection(parse_address(address))) as connection:
        print(connection.send(ask), flush=True)
        meta = decode_meta_properties((lost.data_dir / "meta.properties").read_bytes())
        assert meta.directory_id is not None
        listener = adding.Listener(name="CONTROLLER", host="127.0.0.1", port=known)
        ask_to_add = adding.AddRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            timeout_ms=10_000,
            voter_id=lost.node_id,
            voter_directory_id=meta.directory_id,
            listeners=[listener],
        )
        added: list[int] = []

        def is_added() -> bool:
            added[:] = [connection.send(ask_to_add).error_code]
            print("added", added, flush=True)
            return added == [0]

        nodes.comes(is_added, "the voter cannot be added")
        print(connection.send(ask_to_add), flush=True)


if __name__ == "__main__":
    main()
