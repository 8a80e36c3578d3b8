"""A broker whose process has ended is fenced before its session is over.

Apache Kafka waits for `broker.session.timeout.ms` of silence, nine seconds by default; for so long the
partitions that the broker led have no leader. Here its machine may say sooner that the process has ended: a
deviation that is made on purpose. Both must be so, for the time that the patience below names:

* The broker has no connection to the active controller. Heartbeats and fetches of the metadata log tell which
  connections are a broker's; a process that lives makes a new connection for its next fetch within moments.
* Each of its listeners refuses connections, and so does that of its controller if it has one. Only a system
  that runs answers so, and only where no process listens.

One dropped connection, a process that is paused (its system still accepts), a machine that says nothing, and
a firewall that refuses this controller but lets the broker reach it, cost no broker its leaderships: then the
session decides, as in Kafka. The controller probes the listeners (`controller/broker_probes.py`) and counts
the connections (`controller/connected_brokers.py`); this file decides. It applies to brokers of either kind.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.cluster.image import RegisteredEndpoint
from pykafka_broker.controller.core.events import BrokerConnected, BrokerProbed, HeartbeatsEnded, Moment
from pykafka_broker.controller.core.state import Absence, ControllerState, Decision, Session
from pykafka_broker.system.named_tuple import NamedTuple

#: For a broker that was connected to this controller: it would be back by now.
PATIENCE_MS = 300
#: For one that was connected to the controller before this one, and has to find out about the change.
PATIENCE_AFTER_ELECTION_MS = 700
#: So many probes, one after the other, must have been refused.
MIN_REFUSALS = 3


class Suspect(NamedTuple):
    """A broker that may have ended, and all places at which it would listen if it had not."""

    broker_id: int
    broker_epoch: int
    endpoints: tuple[RegisteredEndpoint, ...]


def unseen(now_ms: int) -> Session:
    """The session of a broker of which a new controller knows from the metadata alone."""
    return Session(now_ms, absence=Absence(now_ms, PATIENCE_AFTER_ELECTION_MS), is_heard=False)


def broker_connected(state: ControllerState, event: BrokerConnected, moment: Moment) -> Decision:
    """The first connection of a broker has come, or its last one has ended."""
    session = state.sessions.get(event.broker_id)
    if session is None or event.is_connected == (session.absence is None):
        return Decision()
    absence = None if event.is_connected else Absence(moment.now_ms, PATIENCE_MS)
    return Decision(sessions={**state.sessions, event.broker_id: session._replace(absence=absence)})


def heartbeats_ended(state: ControllerState, event: HeartbeatsEnded) -> Decision:
    """A broker that registers from the same place now has started again."""
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
    """The absence of a broker with one more probe; None if the probe tells nothing of its present life."""
    suspect = suspects(state).get(event.broker_id)
    if suspect is None or suspect.broker_epoch != event.broker_epoch:
        return None
    absence = state.sessions[event.broker_id].absence
    assert absence is not None
    return absence._replace(refusals=absence.refusals + 1 if event.is_refused else 0)


def has_ended(absence: Absence, now_ms: int) -> bool:
    """Whether the process has ended, by all that this controller has seen."""
    return absence.refusals >= MIN_REFUSALS and now_ms - absence.since_ms >= absence.patience_ms
