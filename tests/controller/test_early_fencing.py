"""A broker whose process has ended is fenced early; one that may live is left to its session."""

from __future__ import annotations

from pykafka_broker.cluster.features import NODE_FEATURES
from pykafka_broker.cluster.image import RegisteredEndpoint
from pykafka_broker.controller.core.brokers import SESSIONS, activate
from pykafka_broker.controller.core.early_fencing import (
    PATIENCE_AFTER_ELECTION_MS,
    PATIENCE_MS,
    Suspect,
    suspects,
)
from pykafka_broker.controller.core.events import (
    BrokerConnected,
    BrokerProbed,
    ExpireSessions,
    HeartbeatsEnded,
    RegisterController,
)
from pykafka_broker.controller.core.state import ControllerState
from pykafka_broker.machine.step import SetTimer, Start
from tests.controller.deciding import NOW_MS, a_cluster, stepped, unfence, uuid

SESSION_MS = 9_000


def lose(state: ControllerState, broker_id: int, at_ms: int = NOW_MS) -> ControllerState:
    """The last connection of a broker has ended."""
    return stepped(state, BrokerConnected(broker_id, False), at_ms).state


def probe(state: ControllerState, broker_id: int, *at_ms: int, is_refused: bool = True) -> ControllerState:
    epoch = state.image.brokers[broker_id].epoch
    for moment in at_ms:
        state = stepped(state, BrokerProbed(broker_id, epoch, is_refused), moment).state
    return state


def fenced(state: ControllerState) -> list[int]:
    return [broker.broker_id for broker in state.image.brokers.values() if broker.fenced]


def after(*pauses_ms: int) -> list[int]:
    return [NOW_MS + pause_ms for pause_ms in pauses_ms]


def test_a_broker_without_a_connection_whose_listeners_refuse_is_fenced_after_a_short_patience() -> None:
    state = lose(a_cluster(1, 2, 3), 2)
    state = probe(state, 2, *after(0, 100, 200, PATIENCE_MS - 1))
    assert fenced(state) == []
    state = probe(state, 2, *after(PATIENCE_MS))
    assert fenced(state) == [2]
    assert suspects(state) == {}


def test_a_change_of_sessions_sets_their_timer_and_names_the_brokers_to_probe() -> None:
    step = stepped(a_cluster(1, 2, 3), BrokerConnected(2, False))
    timer = SetTimer(SESSIONS, NOW_MS + SESSION_MS)
    assert step.effects == (timer, Start(suspects(step.state)))
    assert stepped(step.state, HeartbeatsEnded(2)).effects == (timer,)
    assert stepped(step.state, BrokerConnected(2, False)).effects == ()


def test_a_few_refusals_are_not_enough_however_late_they_come() -> None:
    state = probe(lose(a_cluster(1, 2, 3), 2), 2, *after(5_000, 5_100))
    assert fenced(state) == []
    assert fenced(probe(state, 2, *after(5_200))) == [2]


def test_a_broker_that_was_never_without_a_connection_is_not_fenced_though_its_listeners_refuse() -> None:
    state = probe(a_cluster(1, 2, 3), 2, *after(100, 200, 300, 400, 500))
    assert fenced(state) == []


def test_a_broker_that_is_connected_again_is_no_suspect() -> None:
    state = probe(lose(a_cluster(1, 2, 3), 2), 2, *after(100, 200))
    state = stepped(state, BrokerConnected(2, True), NOW_MS + 250).state
    assert suspects(state) == {}
    assert fenced(probe(state, 2, *after(300, 400, 500))) == []


def test_a_heartbeat_ends_the_suspicion() -> None:
    state = probe(lose(a_cluster(1, 2, 3), 2), 2, *after(100, 200))
    state = unfence(state, 2)
    assert suspects(state) == {}
    assert fenced(probe(state, 2, *after(300, 400, 500))) == []


def test_one_accepted_connection_starts_the_count_again() -> None:
    state = probe(lose(a_cluster(1, 2, 3), 2), 2, *after(100, 200, 300))
    assert fenced(state) == [2]
    state = probe(lose(a_cluster(1, 2, 3), 2), 2, *after(100, 200))
    state = probe(state, 2, *after(290), is_refused=False)
    assert fenced(probe(state, 2, *after(400, 500))) == []


def test_a_paused_broker_accepts_and_keeps_its_leaderships_until_its_session_is_over() -> None:
    state = lose(a_cluster(1, 2, 3), 2)
    state = probe(state, 2, *after(*range(0, SESSION_MS, 500)), is_refused=False)
    assert fenced(state) == []
    assert fenced(stepped(state, ExpireSessions(), NOW_MS + SESSION_MS).state) != []


def test_a_probe_of_an_earlier_life_of_the_broker_counts_nothing() -> None:
    state = lose(a_cluster(1, 2, 3), 2)
    stale = BrokerProbed(2, state.image.brokers[2].epoch - 1, True)
    for _ in range(5):
        state = stepped(state, stale, NOW_MS + 400).state
    assert fenced(state) == []


def test_a_new_controller_gives_brokers_longer_to_find_it() -> None:
    state = activate(a_cluster(1, 2, 3), NOW_MS)
    state = probe(state, 2, *after(100, 200, PATIENCE_AFTER_ELECTION_MS - 1))
    assert fenced(state) == []
    assert fenced(probe(state, 2, *after(PATIENCE_AFTER_ELECTION_MS))) == [2]


def test_all_places_at_which_a_node_listens_are_probed_those_of_its_controller_as_well() -> None:
    state = a_cluster(1, 2, 3)
    endpoint = RegisteredEndpoint("broker2", 9093)
    registration = RegisterController(2, uuid(7), {"CONTROLLER": endpoint}, NODE_FEATURES)
    state = lose(stepped(state, registration).state, 2)
    assert suspects(state) == {
        2: Suspect(2, state.image.brokers[2].epoch, (RegisteredEndpoint("broker2", 9092), endpoint))
    }


def test_the_broker_in_the_controllers_process_is_never_a_suspect() -> None:
    state = lose(a_cluster(1, 2, 3), 1)
    assert suspects(state) == {}
    assert fenced(probe(state, 1, *after(100, 200, 300, 400))) == []
