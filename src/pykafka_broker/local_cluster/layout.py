"""The nodes of a local cluster and the keys of each, before anything is written: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pykafka_broker.system.named_tuple import NamedTuple

HOST = "127.0.0.1"
#: The names of the listeners of brokers and of controllers.
LISTENERS = BROKERS, CONTROLLERS = "PLAINTEXT", "CONTROLLER"
#: The values of `process.roles`, in the order of the listeners: clients use the first listener of a node.
ROLES = ("broker", "controller")
#: The most nodes of a kind: controllers elect by majority, and each node has its own threads, or a process.
MOST_NODES = 100
#: The number of nodes of a new cluster, by default.
DEFAULT_NODES = 3
#: How far the ports of controllers are above those of brokers.
CONTROLLER_PORTS_ABOVE = 100
#: Keys of which each node has its own value.
SET_FOR_EACH_NODE = frozenset(("process.roles", "node.id", "listeners", "log.dirs", "log.dir"))

#: Lets a controller join the voters by itself, also after it has lost its directory (KIP-1186).
AUTO_JOIN = "controller.quorum.auto.join.enable"


class Layout(NamedTuple):
    """How many nodes have both roles, are controllers alone and brokers alone. Only a cluster to which nodes
    were added has all three kinds.
    """

    combined: int = 0
    controllers: int = 0
    brokers: int = 0

    def described(self) -> str:
        numbers = {"node": self.combined, "controller": self.controllers, "broker": self.brokers}
        return " and ".join(f"{n} {kind if n == 1 else f'{kind}s'}" for kind, n in numbers.items() if n)

    def roles(self) -> dict[int, tuple[str, ...]]:
        """The roles of each node by its id; controllers come first."""
        kinds: list[tuple[str, ...]] = [ROLES] * self.combined
        kinds += [("controller",)] * self.controllers
        kinds += [("broker",)] * self.brokers
        return dict(enumerate(kinds, start=1))


def layout_of(nodes: int | None, brokers: int | None, controllers: int | None) -> Layout | None:
    """The nodes that are asked for: each both broker and controller, or both kinds apart. None if no number
    is given.

    Raises:
        ValueError: the numbers contradict each other, or are too small or too large.
    """
    for number in (nodes, brokers, controllers):
        if number is not None and not 1 <= number <= MOST_NODES:
            raise ValueError(f"A cluster here has 1 to {MOST_NODES} nodes of a kind, not {number}")
    if brokers is None and controllers is None:
        return None if nodes is None else Layout(combined=nodes)
    if nodes is not None or brokers is None or controllers is None:
        raise ValueError("Give either nodes, or both brokers and controllers")
    return Layout(controllers=controllers, brokers=brokers)


class Ports(NamedTuple):
    """Where a node listens."""

    broker: int
    controller: int


def fixed_ports(first: int, nodes: Sequence[int]) -> dict[int, Ports]:
    """The ports of nodes, one after the other from the first."""
    return {
        node_id: Ports(first + index, first + CONTROLLER_PORTS_ABOVE + index)
        for index, node_id in enumerate(nodes)
    }


def properties(
    layout: Layout, ports: Mapping[int, Ports], data_dirs: Mapping[int, str], overrides: Mapping[str, str]
) -> dict[int, dict[str, str]]:
    """The keys of each node's server.properties.

    Internal topics have three replicas, or as many as there are brokers, and their `min.isr` is 2, or 1 with
    one broker. Groups do not wait for more members before they begin, as with `start`.
    """
    roles = layout.roles()
    controllers = ",".join(
        f"{HOST}:{ports[node_id].controller}" for node_id in roles if "controller" in roles[node_id]
    )
    brokers = sum("broker" in kinds for kinds in roles.values())
    replicas, in_sync = str(min(3, brokers)), str(min(2, brokers))
    keys = {}
    for node_id, kinds in roles.items():
        listeners = {
            "broker": f"{BROKERS}://{HOST}:{ports[node_id].broker}",
            "controller": f"{CONTROLLERS}://{HOST}:{ports[node_id].controller}",
        }
        keys[node_id] = {
            "process.roles": ",".join(kinds),
            "node.id": str(node_id),
            "controller.quorum.bootstrap.servers": controllers,
            "controller.listener.names": CONTROLLERS,
            "listeners": ",".join(listeners[kind] for kind in kinds),
            "log.dirs": data_dirs[node_id],
            **({AUTO_JOIN: "true"} if "controller" in kinds else {}),
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": in_sync,
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": in_sync,
            "group.initial.rebalance.delay.ms": "0",
            **overrides,
        }
    return keys
