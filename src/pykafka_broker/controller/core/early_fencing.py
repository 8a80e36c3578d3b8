"""A broker whose process has ended is fenced before its session ends.

Apache Kafka waits for `broker.session.timeout.ms` of silence, nine seconds by default; during that time the
partitions that the broker led have no leader. Fencing earlier is a deviation that is made on purpose. Two
conditions must hold for `PATIENCE_MS` or `PATIENCE_AFTER_ELECTION_MS`:

* The broker has no connection to the active controller. A broker's connections are those with heartbeats or
  fetches of the metadata log; a running process soon makes a new connection for its next fetch.
* Each listener of the broker, and of its controller if it has one, refuses connections. A machine
  refuses a connection only if it runs and no process listens on the port.

A broker keeps its leaderships if one connection drops, if its process is paused (the system still accepts
connections), if its machine does not answer, or if a firewall refuses only the controller's connections: then
the session decides, as in Kafka. The controller probes the listeners (`controller/broker_probes.py`) and
counts the connections (`controller/connected_brokers.py`); this file decides.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.cluster.image import RegisteredEndpoint
from pykafka_broker.controller.core.events import BrokerConnected, BrokerProbed, HeartbeatsEnded, Moment
from pykafka_broker.controller.core.state import Absence, ControllerState, Decision, Session
from pykafka_broker.system.named_tuple import NamedTuple

#: For a broker that was connected to this controller: a running one would have reconnected.
PATIENCE_MS = 300
#: For a broker of the previous controller: it has to learn of the election first.
PATIENCE_AFTER_ELECTION_MS = 700
#: The number of consecutive probes that must have been refused.
MIN_REFUSALS = 3


class Suspect(NamedTuple):
    """A broker whose process may have ended, and the endpoints of all its listeners."""

    broker_id: int
    broker_epoch: int
    endpoints: tuple[RegisteredEndpoint, ...]


def unseen(now_ms: int) -> Session:
    """The session of a broker that a new controller knows only from the metadata."""
    return Session(now_ms, absence=Absence(now_ms, PATIENCE_AFTER_ELECTION_MS), is_heard=False)


def broker_connected(state: ControllerState, event: BrokerConnected, moment: Moment) -> Decision:
    """The first connection of a broker has come, or its last one has ended."""
    session = state.sessions.get(event.broker_id)
    if session is None or event.is_connected == (session.absence is None):
        return Decision()
    absence = None if event.is_connected else Absence(moment.now_ms, PATIENCE_MS)
    return Decision(sessions={**state.sessions, event.broker_id: session._replace(absence=absence)})


def heartbeats_ended(state: ControllerState, event: HeartbeatsEnded) -> Decision:
    """Note that a registration with the same directories and addresses is now a restart of this broker."""
    session = state.sessions.get(event.broker_id)
    if session is None:
        return Decision()
    return Decision(sessions={**state.sessions, event.broker_id: session._replace(is_heard=False)})


def suspects(state: ControllerState) -> Mapping[int, Suspect]:
    """The brokers to probe, by their ids."""
    found = {}
    for broker_id, session in state.sessions.items():
        broker = state.image.brokers.get(broker_id)
        if session.absence is None or broker is None or broker.fenced or broker_id == state.rules.node_id:
            continue
        controller = state.image.controllers.get(broker_id)
        endpoints = (*broker.listeners.values(), *(controller.listeners.values() if controller else ()))
        found[broker_id] = Suspect(broker_id, broker.epoch, tuple(dict.fromkeys(endpoints)))
    return found


def counted(state: ControllerState, event: BrokerProbed) -> Absence | None:
    """The absence of a broker with one more probe; None if the probe was of an earlier registration."""
    suspect = suspects(state).get(event.broker_id)
    if suspect is None or suspect.broker_epoch != event.broker_epoch:
        return None
    absence = state.sessions[event.broker_id].absence
    assert absence is not None
    return absence._replace(refusals=absence.refusals + 1 if event.is_refused else 0)


def has_ended(absence: Absence, now_ms: int) -> bool:
    """Whether the broker's process counts as ended."""
    return absence.refusals >= MIN_REFUSALS and now_ms - absence.since_ms >= absence.patience_ms
