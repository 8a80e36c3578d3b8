"""FindCoordinator: which broker coordinates a group."""

from __future__ import annotations

from interop.conformance.conversation import LATEST, conversation
from interop.conformance.groups import a_group
from interop.conformance.shares import ShareGroup
from interop.conformance.talk import ANY, E, Talk
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest

GROUP, TRANSACTION, SHARE = 0, 1, 2
#: Which topic it is makes no difference here.
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"


def finding(talk: Talk, *keys: str, key_type: int = GROUP) -> FindCoordinatorRequest:
    if talk.version < 4:
        return FindCoordinatorRequest(key=keys[0], key_type=key_type)
    return FindCoordinatorRequest(coordinator_keys=list(keys), key_type=key_type)


@conversation
def a_group_has_a_coordinator_before_it_has_members(talk: Talk) -> None:
    group = a_group(talk)
    talk.ask(finding(talk, group))


@conversation
def an_empty_group_id_has_a_coordinator_too(talk: Talk) -> None:
    a_group(talk)
    talk.ask(finding(talk, ""))


@conversation("4+")
def several_groups_are_answered_in_their_order(talk: Talk) -> None:
    group = a_group(talk)
    talk.ask(finding(talk, f"{group}-b", group, f"{group}-a"))


@conversation("4+")
def a_group_that_is_asked_for_twice(talk: Talk) -> None:
    group = a_group(talk)
    talk.ask(finding(talk, group, group))


@conversation("4+")
def no_keys_get_no_coordinators(talk: Talk) -> None:
    a_group(talk)
    talk.ask(FindCoordinatorRequest(coordinator_keys=[], key_type=GROUP))


@conversation("1-3")
def a_kind_of_coordinator_that_does_not_exist_is_refused(talk: Talk) -> None:
    talk.ask(finding(talk, "key", key_type=9), E.INVALID_REQUEST)


@conversation("4+")
def a_kind_of_coordinator_that_does_not_exist_is_refused_for_each_key(talk: Talk) -> None:
    talk.ask(finding(talk, "one", "two", key_type=9), E.INVALID_REQUEST, E.INVALID_REQUEST)


@conversation("4+")
def a_negative_kind_of_coordinator_is_refused(talk: Talk) -> None:
    talk.ask(finding(talk, "one", key_type=-1), E.INVALID_REQUEST)


@conversation("4-5")
def a_share_coordinator_is_unknown_before_version_6(talk: Talk) -> None:
    talk.ask(finding(talk, "group:topic:0", key_type=SHARE), E.INVALID_REQUEST)


@conversation(LATEST)
def a_malformed_share_key_is_refused(talk: Talk) -> None:
    talk.ask(finding(talk, "no-colons", key_type=SHARE), E.INVALID_REQUEST)


@conversation("6+")
def share_partitions_have_coordinators_whatever_their_topic(talk: Talk) -> None:
    ShareGroup(talk)
    keys = [f"{talk.name('group')}:{TOPIC_ID}:{partition}" for partition in ("0", "7", "+7", "-1", "007")]
    keys += [f"with:colons:{TOPIC_ID}:0", f"{keys[0]}::"]
    talk.ask(finding(talk, *keys, key_type=SHARE))


@conversation("6+")
def words_that_name_no_share_partition(talk: Talk) -> None:
    ShareGroup(talk)
    right = f"{talk.name('group')}:{TOPIC_ID}:0"
    for wrong in ("", "a:b", f":{TOPIC_ID}:0", f" :{TOPIC_ID}:0", "g:short:0", f"{right}x"):
        talk.ask(finding(talk, wrong, right, key_type=SHARE), E.INVALID_REQUEST)
    talk.ask(finding(talk, f"g:{TOPIC_ID}:2147483648", f"g:{TOPIC_ID[:-1]}:0", key_type=SHARE), ANY)
