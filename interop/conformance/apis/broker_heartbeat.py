"""BrokerHeartbeat: other brokers live, and move from state to state."""

from __future__ import annotations

from interop.conformance.brokers import ELSEWHERE, beating, leave, registered, unfenced, uuid_of
from interop.conformance.conversation import LATEST, conversation
from interop.conformance.talk import E, Talk


@conversation(settings=ELSEWHERE)
def a_broker_is_unfenced_when_it_has_read_its_registration(talk: Talk) -> None:
    controllers = talk.controllers()
    epoch = registered(talk, controllers)
    controllers.ask(beating(talk, epoch, epoch - 1))
    controllers.ask(beating(talk, epoch, epoch, want_fence=True))
    controllers.ask(beating(talk, epoch, epoch))
    controllers.ask(beating(talk, epoch, epoch))
    controllers.ask(beating(talk, epoch, epoch, want_fence=True))


@conversation(settings=ELSEWHERE)
def a_broker_that_leads_nothing_may_stop_at_once(talk: Talk) -> None:
    controllers = talk.controllers()
    epoch = unfenced(talk, controllers)
    controllers.ask(beating(talk, epoch, epoch, want_shut_down=True))
    controllers.ask(beating(talk, epoch, epoch, want_shut_down=True))


@conversation(settings=ELSEWHERE)
def a_fenced_broker_may_stop_at_once(talk: Talk) -> None:
    controllers = talk.controllers()
    epoch = registered(talk, controllers)
    controllers.ask(beating(talk, epoch, epoch, want_shut_down=True))


@conversation(settings=ELSEWHERE)
def an_earlier_life_and_an_unknown_broker_are_refused(talk: Talk) -> None:
    controllers = talk.controllers()
    epoch = registered(talk, controllers)
    controllers.ask(beating(talk, epoch - 1, epoch), E.STALE_BROKER_EPOCH)
    controllers.ask(beating(talk, epoch, epoch, broker_id=3_000_000), E.STALE_BROKER_EPOCH)


@conversation(LATEST, settings=ELSEWHERE)
def directories_fail_and_are_cordoned(talk: Talk) -> None:
    controllers = talk.controllers()
    directories = [uuid_of(talk, "one"), uuid_of(talk, "two")]
    epoch = unfenced(talk, controllers, log_dirs=directories)
    controllers.ask(beating(talk, epoch, epoch, cordoned_log_dirs=directories[:1]))
    controllers.ask(beating(talk, epoch, epoch, offline_log_dirs=directories[:1]))
    leave(talk, controllers, epoch)
