"""DescribeCluster: the brokers and the cluster id."""

from __future__ import annotations

from interop.conformance.brokers import ELSEWHERE, broker_of, registered
from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.describe_cluster import DescribeClusterRequest
from pykafka_broker.protocol.messages.unregister_broker import UnregisterBrokerRequest

BROKERS, CONTROLLERS = 1, 2


@conversation
def the_brokers_are_described(talk: Talk) -> None:
    talk.ask(DescribeClusterRequest(include_cluster_authorized_operations=False))


@conversation
def what_may_be_done_with_the_cluster_is_told_to_those_who_ask(talk: Talk) -> None:
    talk.ask(DescribeClusterRequest(include_cluster_authorized_operations=True))


@conversation("1+")
def controllers_are_not_described_by_a_broker(talk: Talk) -> None:
    talk.ask(
        DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=CONTROLLERS),
        E.MISMATCHED_ENDPOINT_TYPE,
    )


@conversation("1+")
def other_types_of_endpoints_are_not_supported(talk: Talk) -> None:
    for endpoint_type in (0, 3, -1):
        talk.ask(
            DescribeClusterRequest(include_cluster_authorized_operations=True, endpoint_type=endpoint_type),
            E.UNSUPPORTED_ENDPOINT_TYPE,
        )


@conversation("2+")
def fenced_brokers_are_told_to_those_who_ask(talk: Talk) -> None:
    talk.ask(DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=True))


@conversation("2+", alone=True, settings=ELSEWHERE)
def a_broker_that_has_not_been_unfenced_is_a_fenced_one(talk: Talk) -> None:
    registered(talk, talk.controllers(), rack="r")
    asking = DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=True)
    in_any_order = {"brokers": "broker_id"}
    talk.ask(asking, in_any_order=in_any_order, until=lambda answer: len(answer.brokers) == 2)
    asking.include_fenced_brokers = False
    talk.ask(asking)
    talk.do(UnregisterBrokerRequest(broker_id=broker_of(talk)))


@conversation("2+")
def there_are_no_fenced_controllers_to_tell_of(talk: Talk) -> None:
    talk.ask(
        DescribeClusterRequest(
            include_cluster_authorized_operations=False,
            endpoint_type=CONTROLLERS,
            include_fenced_brokers=True,
        ),
        E.MISMATCHED_ENDPOINT_TYPE,
    )


@conversation
def controllers_are_described_on_their_own_listener(talk: Talk) -> None:
    errors = () if talk.version else (E.INVALID_REQUEST,)
    for operations in (False, True):
        talk.controllers().ask(
            DescribeClusterRequest(
                include_cluster_authorized_operations=operations, endpoint_type=CONTROLLERS
            ),
            *errors,
        )


@conversation("1+")
def a_listener_of_controllers_describes_nothing_else(talk: Talk) -> None:
    controllers = talk.controllers()
    controllers.ask(
        DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=BROKERS),
        E.MISMATCHED_ENDPOINT_TYPE,
    )
    for endpoint_type in (0, 3, -1):
        controllers.ask(
            DescribeClusterRequest(include_cluster_authorized_operations=True, endpoint_type=endpoint_type),
            E.UNSUPPORTED_ENDPOINT_TYPE,
        )
