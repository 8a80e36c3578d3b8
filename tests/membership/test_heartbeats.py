"""What a broker tells the controller next, and when."""

from __future__ import annotations

from itertools import pairwise

from pykafka_broker.controller.core.events import BrokerHeartbeat, HeartbeatResult
from pykafka_broker.membership.core.heartbeats import (
    Life,
    LifeSettings,
    Phase,
    Request,
    answered,
    begin,
    begin_shutdown,
    cordon,
    directory_failed,
    due,
    failed,
    heartbeat,
    next_wake_ms,
    ready,
    register_again,
    registered,
    sent,
    time_passed,
    unknown,
    untold_directory,
)

SETTINGS = LifeSettings(
    heartbeat_interval_ms=2_000,
    session_timeout_ms=9_000,
    registration_timeout_ms=60_000,
    directory_failure_timeout_ms=30_000,
)
BEHIND = HeartbeatResult(is_caught_up=False, is_fenced=True, should_shut_down=False)
FENCED = HeartbeatResult(is_caught_up=True, is_fenced=True, should_shut_down=False)
UNFENCED = HeartbeatResult(is_caught_up=True, is_fenced=False, should_shut_down=False)
MAY_STOP = HeartbeatResult(is_caught_up=True, is_fenced=True, should_shut_down=True)


def beaten(life: Life, result: HeartbeatResult, now_ms: int) -> Life:
    """The broker after a heartbeat that was due by now, and its answer."""
    assert due(life, now_ms) is Request.HEARTBEAT, life
    return answered(sent(life), heartbeat(life, 1, 10), result, now_ms)


def registered_at(now_ms: int) -> Life:
    return registered(sent(begin(SETTINGS, now_ms)), 5, now_ms)


def running_at(now_ms: int) -> Life:
    caught_up = beaten(registered_at(now_ms), FENCED, now_ms)
    return beaten(ready(caught_up, now_ms), UNFENCED, now_ms)


def test_a_broker_registers_catches_up_gets_ready_and_then_beats_in_every_interval() -> None:
    life = begin(SETTINGS, 0)
    assert (life.phase, due(life, 0)) == (Phase.STARTING, Request.REGISTRATION)
    life = registered(sent(life), 5, 100)

    life = beaten(life, BEHIND, 100)
    assert (life.phase, due(life, 109), due(life, 110)) == (Phase.STARTING, None, Request.HEARTBEAT)
    life = beaten(life, FENCED, 110)
    assert life.phase is Phase.RECOVERY
    life = beaten(life, FENCED, 120)
    assert (life.phase, next_wake_ms(life)) == (Phase.RECOVERY, 2_120)

    life = ready(life, 500)
    assert heartbeat(life, 1, 10) == BrokerHeartbeat(1, 5, 10, want_fence=False)
    life = beaten(life, UNFENCED, 500)

    assert (life.phase, next_wake_ms(life)) == (Phase.RUNNING, 2_500)


def test_while_a_request_is_on_its_way_no_other_is_sent() -> None:
    life = sent(running_at(0))
    assert due(life, 1_000_000) is None
    assert due(ready(life, 0), 1_000_000) is None


def test_what_is_new_while_a_heartbeat_is_on_its_way_is_told_right_after_it() -> None:
    life = sent(running_at(0)._replace(next_ms=0))
    told = heartbeat(life, 1, 10)
    life = directory_failed(life, b"d", 5)

    life = answered(life, told, UNFENCED, 10)

    assert due(life, 10) is Request.HEARTBEAT
    assert heartbeat(life, 1, 10).offline_directories == (b"d",)
    life = beaten(life, UNFENCED, 10)
    assert (untold_directory(life, 1_000_000), next_wake_ms(life)) == (None, 2_010)


def test_pauses_double_with_each_failure_up_to_a_session_and_end_with_an_answer() -> None:
    life, now_ms, pauses = begin(SETTINGS, 0), 0, []
    for _ in range(9):
        life = failed(sent(life), now_ms)
        assert life.next_ms is not None
        pauses.append(life.next_ms - now_ms)
        now_ms = life.next_ms
    assert pauses == [100, 200, 400, 800, 1_600, 3_200, 6_400, 9_000, 9_000]

    life = registered(sent(life), 5, now_ms)
    assert due(life, now_ms) is Request.HEARTBEAT
    assert failed(sent(life), now_ms).next_ms == now_ms + 100


def test_a_failure_is_followed_by_a_pause_even_where_there_is_something_new() -> None:
    life = ready(sent(registered_at(0)), 0)
    assert due(failed(life, 0), 99) is None


def test_a_broker_that_is_not_registered_in_time_stops() -> None:
    life = failed(sent(begin(SETTINGS, 0)), 59_950)
    assert next_wake_ms(life) == 60_000
    assert time_passed(life, 59_999) == life
    assert time_passed(life, 60_000).phase is Phase.SHUTTING_DOWN
    assert time_passed(running_at(0), 60_000).phase is Phase.RUNNING


def test_a_broker_that_was_fenced_while_it_ran_goes_on() -> None:
    life = beaten(running_at(0), FENCED, 2_000)
    assert (life.phase, heartbeat(life, 1, 10).want_fence) == (Phase.RUNNING, False)


def test_a_registration_that_changes_while_it_is_on_its_way_is_sent_again() -> None:
    life = register_again(sent(begin(SETTINGS, 0)), 5)
    life = registered(life, 5, 10)
    assert due(life, 10) is Request.REGISTRATION

    life = registered(sent(life), 5, 20)

    assert due(life, 20) is Request.HEARTBEAT


def test_a_registration_that_changes_later_keeps_the_state() -> None:
    life = register_again(running_at(0), 5)
    assert (due(life, 5), life.phase) == (Request.REGISTRATION, Phase.RUNNING)
    life = registered(sent(life), 5, 10)
    assert heartbeat(life, 1, 10) == BrokerHeartbeat(1, 5, 10)


def test_cordoned_directories_are_told_at_once_and_with_every_heartbeat() -> None:
    life = cordon(running_at(0), (b"c",), 7)
    assert due(life, 7) is Request.HEARTBEAT
    assert heartbeat(life, 1, 10).cordoned_directories == (b"c",)
    assert heartbeat(beaten(life, UNFENCED, 7), 1, 10).cordoned_directories == (b"c",)


def test_a_directory_has_to_be_told_in_time() -> None:
    life = failed(sent(directory_failed(running_at(0), b"d", 1_000)), 1_000)
    assert (untold_directory(life, 30_999), untold_directory(life, 31_000)) == (None, b"d")


def test_a_broker_asks_for_leave_to_stop_first_twice_then_ever_more_slowly() -> None:
    life = begin_shutdown(running_at(0), 500)
    asked: list[int] = []
    now_ms = 500
    while len(asked) < 10:
        assert heartbeat(life, 1, 10).want_shutdown
        life = beaten(life, UNFENCED, now_ms)
        asked.append(now_ms)
        assert life.next_ms is not None
        now_ms = life.next_ms
    pauses = [after - before for before, after in pairwise(asked)]
    assert pauses == [0, 50, 100, 200, 400, 800, 1_600, 2_000, 2_000]

    life = beaten(life, MAY_STOP, now_ms)

    assert (life.phase, due(life, 1_000_000), next_wake_ms(life)) == (Phase.SHUTTING_DOWN, None, None)


def test_an_answer_to_a_heartbeat_from_before_is_no_answer_to_the_wish_to_stop() -> None:
    life = sent(running_at(0)._replace(next_ms=0))
    told = heartbeat(life, 1, 10)
    life = answered(begin_shutdown(life, 5), told, UNFENCED, 10)
    assert (due(life, 10), life.refusals) == (Request.HEARTBEAT, 0)


def test_a_broker_that_was_unregistered_goes_on_asking_but_stops_without_leave() -> None:
    life = unknown(sent(running_at(0)), 5)
    assert (life.phase, life.next_ms) == (Phase.RUNNING, 105)
    assert unknown(sent(begin_shutdown(life, 10)), 15).phase is Phase.SHUTTING_DOWN


def test_a_broker_that_never_ran_stops_without_asking() -> None:
    assert begin_shutdown(registered_at(0), 5).phase is Phase.SHUTTING_DOWN


def test_a_broker_stops_without_leave_after_five_minutes_or_a_session_without_an_answer() -> None:
    life = begin_shutdown(running_at(0), 0)
    assert time_passed(failed(sent(life), 0), 8_999).phase is Phase.PENDING_CONTROLLED_SHUTDOWN
    assert time_passed(failed(sent(life), 0), 9_000).phase is Phase.SHUTTING_DOWN

    now_ms = 0
    while life.phase is Phase.PENDING_CONTROLLED_SHUTDOWN:
        life = beaten(life, UNFENCED, now_ms)
        wake_ms = next_wake_ms(life)
        assert wake_ms is not None
        now_ms = wake_ms
        life = time_passed(life, now_ms)
    assert now_ms == 300_000
