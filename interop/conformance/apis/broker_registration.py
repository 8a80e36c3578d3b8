"""BrokerRegistration: other brokers introduce themselves on the listener of controllers."""

from __future__ import annotations

from interop.conformance.brokers import ELSEWHERE, leave, registered, registering, unfenced, uuid_of
from interop.conformance.conversation import LATEST, conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.broker_registration import Feature


@conversation("2+", settings=ELSEWHERE)
def a_broker_gets_an_epoch_and_keeps_it_when_it_asks_again(talk: Talk) -> None:
    controllers = talk.controllers()
    controllers.ask(registering(talk))
    controllers.ask(registering(talk, rack="another"))


@conversation("0-1", settings=ELSEWHERE)
def a_broker_has_to_name_its_directories(talk: Talk) -> None:
    talk.controllers().ask(registering(talk), E.INVALID_REGISTRATION)


@conversation(LATEST, settings=ELSEWHERE)
def a_registration_that_does_not_fit_is_refused(talk: Talk) -> None:
    controllers = talk.controllers()
    controllers.ask(registering(talk, cluster_id="another"), E.INCONSISTENT_CLUSTER_ID)
    controllers.ask(registering(talk, log_dirs=[]), E.INVALID_REGISTRATION)
    controllers.ask(registering(talk, log_dirs=[uuid_of(talk, "twice")] * 2), E.INVALID_REGISTRATION)
    controllers.ask(registering(talk, log_dirs=[bytes(15) + b"\x01"]), E.INVALID_REGISTRATION)
    controllers.ask(registering(talk, is_migrating_zk_broker=True), E.BROKER_ID_NOT_REGISTERED)
    old = [Feature(name="metadata.version", min_supported_version=7, max_supported_version=8)]
    controllers.ask(registering(talk, features=old), E.UNSUPPORTED_VERSION)


@conversation(LATEST, settings=ELSEWHERE)
def another_life_is_refused_while_the_first_has_a_session(talk: Talk) -> None:
    controllers = talk.controllers()
    epoch = unfenced(talk, controllers)
    controllers.ask(
        registering(talk, incarnation_id=uuid_of(talk, "second")), E.DUPLICATE_BROKER_REGISTRATION
    )
    leave(talk, controllers, epoch)


@conversation(LATEST, settings=ELSEWHERE)
def a_directory_belongs_to_one_broker(talk: Talk) -> None:
    controllers = talk.controllers()
    registered(talk, controllers)
    controllers.ask(registering(talk, broker_id=3_000_000), E.INVALID_REGISTRATION)
