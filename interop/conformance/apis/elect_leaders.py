"""ElectLeaders: elections that a client asks for, on a node that leads everything already."""

from __future__ import annotations

from interop.conformance.conversation import LATEST, conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

PREFERRED, UNCLEAN = 0, 1


def electing(
    *topics: tuple[str, list[int]], election_type: int = PREFERRED, timeout_ms: int = 10_000
) -> ElectLeadersRequest:
    return ElectLeadersRequest(
        election_type=election_type,
        topic_partitions=[TopicPartitions(topic=name, partitions=partitions) for name, partitions in topics],
        timeout_ms=timeout_ms,
    )


@conversation
def a_partition_that_its_preferred_leader_leads(talk: Talk) -> None:
    talk.ask(electing((talk.topic().name, [0])), E.ELECTION_NOT_NEEDED)


@conversation("1+")
def an_unclean_election_of_a_partition_with_a_leader(talk: Talk) -> None:
    talk.ask(electing((talk.topic().name, [0]), election_type=UNCLEAN), E.ELECTION_NOT_NEEDED)


@conversation("1+")
def an_unclean_election_where_the_topic_allows_it(talk: Talk) -> None:
    name = talk.topic(configs={"unclean.leader.election.enable": "true"}).name
    talk.ask(electing((name, [0]), election_type=UNCLEAN), E.ELECTION_NOT_NEEDED)


@conversation
def several_partitions_of_several_topics(talk: Talk) -> None:
    names = [talk.topic(label, partitions=2).name for label in ("b", "a")]
    talk.ask(electing(*((name, [1, 0]) for name in names)), *[E.ELECTION_NOT_NEEDED] * 4)


@conversation
def a_partition_named_twice(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(electing((name, [0, 0])), *[E.ELECTION_NOT_NEEDED] * 2)
    talk.ask(electing((name, [0]), (name, [0])), *[E.ELECTION_NOT_NEEDED] * 2)


@conversation
def a_topic_without_partitions(talk: Talk) -> None:
    talk.ask(electing((talk.topic().name, [])))


@conversation
def an_unknown_topic(talk: Talk) -> None:
    talk.ask(electing((talk.name(), [0])), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def an_unknown_partition_beside_a_known_one(talk: Talk) -> None:
    name = talk.topic().name
    errors = [E.ELECTION_NOT_NEEDED, *[E.UNKNOWN_TOPIC_OR_PARTITION] * 2]
    talk.ask(electing((name, [0, 7, -1])), *errors)


@conversation
def what_cannot_be_a_name(talk: Talk) -> None:
    for name in ("", "two words"):
        talk.ask(electing((name, [0])), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def a_request_without_topics(talk: Talk) -> None:
    talk.ask(electing())


@conversation("0+", alone=True)
def all_partitions_when_none_needs_an_election(talk: Talk) -> None:
    talk.topic(partitions=2)
    asked = ElectLeadersRequest(topic_partitions=None)
    talk.ask(asked, in_any_order={"replica_election_results": "topic", "partition_result": "partition_id"})


@conversation("1+")
def an_election_type_that_there_is_not(talk: Talk) -> None:
    name = talk.topic().name
    for election_type in (2, 127, -1):
        talk.ask(electing((name, [0]), election_type=election_type), *[E.INVALID_REQUEST] * 2)


@conversation("1+")
def an_election_type_that_there_is_not_for_nothing(talk: Talk) -> None:
    talk.ask(electing(election_type=2))
    talk.ask(electing((talk.topic().name, []), election_type=2), E.INVALID_REQUEST)


@conversation("1+")
def an_election_type_that_there_is_not_for_all(talk: Talk) -> None:
    asked = ElectLeadersRequest(election_type=2, topic_partitions=None)
    talk.ask(asked, E.INVALID_REQUEST)


@conversation("0")
def a_timeout_of_nothing_in_the_oldest_version(talk: Talk) -> None:
    talk.ask(electing((talk.topic().name, [0]), timeout_ms=0), E.REQUEST_TIMED_OUT)


@conversation("1+")
def a_timeout_of_nothing(talk: Talk) -> None:
    talk.ask(electing((talk.topic().name, [0]), timeout_ms=0), *[E.REQUEST_TIMED_OUT] * 2)
    talk.ask(electing(timeout_ms=0))


@conversation(LATEST)
def the_metadata_log_elects_nothing(talk: Talk) -> None:
    talk.ask(electing(("__cluster_metadata", [0])), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def elections_over_a_listener_of_controllers(talk: Talk) -> None:
    controllers = talk.controllers()
    controllers.ask(electing((talk.topic().name, [0])), E.ELECTION_NOT_NEEDED)
    controllers.ask(electing((talk.name("missing"), [0])), E.UNKNOWN_TOPIC_OR_PARTITION)
