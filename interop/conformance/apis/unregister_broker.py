"""UnregisterBroker: brokers that nobody knows, and the one that answers."""

from __future__ import annotations

from interop.conformance.brokers import ELSEWHERE, beating, broker_of, registered, topic_on, unfenced
from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.describe_cluster import DescribeClusterRequest
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykafka_broker.protocol.messages.unregister_broker import UnregisterBrokerRequest

#: The node that both brokers are.
THE_NODE = 1


@conversation
def an_unknown_broker(talk: Talk) -> None:
    for broker_id in (7, 0, -1, 2**31 - 1):
        talk.ask(UnregisterBrokerRequest(broker_id=broker_id), E.BROKER_ID_NOT_REGISTERED)


@conversation(settings=ELSEWHERE)
def a_broker_that_has_not_been_unfenced(talk: Talk) -> None:
    registered(talk, talk.controllers())
    talk.ask(UnregisterBrokerRequest(broker_id=broker_of(talk)))
    talk.ask(UnregisterBrokerRequest(broker_id=broker_of(talk)), E.BROKER_ID_NOT_REGISTERED)


@conversation(settings=ELSEWHERE)
def a_broker_that_lives_is_not_heard_any_more(talk: Talk) -> None:
    controllers = talk.controllers()
    epoch = unfenced(talk, controllers)
    controllers.ask(UnregisterBrokerRequest(broker_id=broker_of(talk)))
    controllers.ask(beating(talk, epoch, epoch), E.STALE_BROKER_EPOCH, version=1)


@conversation(alone=True, settings=ELSEWHERE)
def the_partitions_of_a_forgotten_broker_are_led_by_others(talk: Talk) -> None:
    broker_id = broker_of(talk)
    unfenced(talk, talk.controllers())
    topic_on(talk, broker_id, THE_NODE)
    talk.ask(UnregisterBrokerRequest(broker_id=broker_id))
    talk.ask(
        MetadataRequest(topics=[MetadataRequestTopic(name=talk.name())]),
        version=12,
        # An Apache broker may name the leaders of one image and the brokers of the next.
        until=lambda answer: (
            len(answer.brokers) == 1 and answer.topics[0].partitions[0].leader_id == THE_NODE
        ),
    )


# Settings that no other conversation has: both brokers are forgotten, and are no brokers any more.
@conversation(alone=True, settings={"log.message.timestamp.type": "LogAppendTime"})
def the_broker_that_answers(talk: Talk) -> None:
    talk.ask(UnregisterBrokerRequest(broker_id=THE_NODE))
    talk.ask(UnregisterBrokerRequest(broker_id=THE_NODE), E.BROKER_ID_NOT_REGISTERED)
    describing = DescribeClusterRequest(
        include_cluster_authorized_operations=False, include_fenced_brokers=True
    )
    talk.ask(describing, version=2, until=lambda answer: not answer.brokers)
    talk.ask(MetadataRequest(topics=None), version=12)
