"""AllocateProducerIds: each block of producer ids goes to one broker."""

from __future__ import annotations

from interop.conformance.brokers import ELSEWHERE, broker_of, registered
from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest


@conversation(settings=ELSEWHERE)
def blocks_follow_each_other(talk: Talk) -> None:
    controllers = talk.controllers()
    asking = AllocateProducerIdsRequest(broker_id=broker_of(talk), broker_epoch=registered(talk, controllers))
    controllers.ask(asking)
    controllers.ask(asking)


@conversation(settings=ELSEWHERE)
def an_earlier_life_and_an_unknown_broker_get_none(talk: Talk) -> None:
    controllers = talk.controllers()
    epoch = registered(talk, controllers)
    controllers.ask(
        AllocateProducerIdsRequest(broker_id=broker_of(talk), broker_epoch=epoch - 1), E.STALE_BROKER_EPOCH
    )
    controllers.ask(AllocateProducerIdsRequest(broker_id=3_000_000, broker_epoch=0), E.STALE_BROKER_EPOCH)
