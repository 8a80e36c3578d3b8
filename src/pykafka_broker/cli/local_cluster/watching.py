"""Watch the nodes of a local cluster: one line per event, whatever caused it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from pykafka_broker.cli.interrupts import Interrupts
from pykafka_broker.cli.local_cluster.nodes import Tell
from pykafka_broker.cli.local_cluster.processes import NodeState, states_of
from pykafka_broker.local_cluster.folder import ClusterFolder

#: How often nodes are looked at.
WATCH_S = 0.25


def changes(before: Mapping[int, NodeState], now: Iterable[NodeState]) -> Iterator[str]:
    """A line for each node whose state has changed."""
    for state in now:
        if before.get(state.node_id) == state:
            continue
        if state.state == "died":
            yield f"Node {state.node_id} died: {state.reason}"
        elif state.state == "stopped":
            yield f"Node {state.node_id} has stopped"
        else:
            yield f"Node {state.node_id} is {state.state} at {state.address} (process {state.pid})"


def watch(cluster: ClusterFolder, states: Sequence[NodeState], tell: Tell, interrupts: Interrupts) -> None:
    """Report changes of the nodes after `states`, until a signal comes, or all have been stopped in good
    order.
    """
    with suppress(KeyboardInterrupt):
        while any(state.state != "stopped" for state in states):
            with interrupts.waiting():
                time.sleep(WATCH_S)
            now = states_of(cluster)
            for line in changes({state.node_id: state for state in states}, now):
                tell(line)
            states = now
