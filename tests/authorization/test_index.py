"""What ACLs say of an operation: by examples, beside a plain model, and with mistakes that it finds."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.authorization import index as module
from pykafka_broker.authorization.index import Acl, AclIndex, Ruling, Verdict
from pykafka_broker.authorization.names import Names
from pykafka_broker.protocol.acls import AclOperation, AclPermission, AclResourceType, PatternType
from tests.authorization import model

TOPIC, GROUP = AclResourceType.TOPIC, AclResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = AclPermission.ALLOW, AclPermission.DENY
READ, WRITE, ALTER, DESCRIBE = (
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
)
HOST = "10.0.0.1"


def acl(
    name: str,
    operation: int = READ,
    permission: int = ALLOW,
    *,
    pattern: int = LITERAL,
    principal: str = "User:alice",
    host: str = "*",
    resource_type: int = TOPIC,
) -> Acl:
    return Acl(resource_type, name, pattern, principal, host, operation, permission)


def of_alice(acls: list[Acl], name: str, operation: int = READ, host: str = HOST) -> Verdict:
    return AclIndex(acls).decide("User:alice", host, operation, TOPIC, name).verdict


# -- one resource -------------------------------------------------------------------------------------------


def test_without_an_acl_about_the_resource_there_is_no_verdict() -> None:
    others = [acl("orders", resource_type=GROUP), acl("order"), acl("orders-", pattern=PREFIXED)]
    assert of_alice(others, "orders") is Verdict.NO_ACLS


@pytest.mark.parametrize(
    "about",
    [acl("orders"), acl("*"), acl("ord", pattern=PREFIXED), acl("orders", pattern=PREFIXED)],
)
def test_an_acl_concerns_its_name_names_with_its_prefix_or_every_name(about: Acl) -> None:
    assert of_alice([about], "orders") is Verdict.ALLOWED


def test_a_resource_with_acls_is_closed_to_those_whom_none_concerns() -> None:
    assert of_alice([acl("orders", principal="User:bob")], "orders") is Verdict.DENIED
    assert of_alice([acl("orders", host="10.0.0.2")], "orders") is Verdict.DENIED
    assert of_alice([acl("orders", WRITE)], "orders") is Verdict.DENIED


@pytest.mark.parametrize("deny", [acl("*", READ, DENY), acl("o", READ, DENY, pattern=PREFIXED)])
def test_one_that_denies_outweighs_all_that_allow(deny: Acl) -> None:
    assert of_alice([acl("orders"), acl("orders", AclOperation.ALL), deny], "orders") is Verdict.DENIED


def test_everybody_is_a_principal_and_a_name_of_one_star_is_a_resource() -> None:
    everybody = acl("orders", principal="User:*")
    assert of_alice([everybody], "orders") is Verdict.ALLOWED
    assert of_alice([acl("*")], "*") is Verdict.ALLOWED


@pytest.mark.parametrize("implying", [READ, WRITE, ALTER, AclOperation.DELETE])
def test_what_may_be_used_may_be_described(implying: AclOperation) -> None:
    assert of_alice([acl("orders", implying)], "orders", DESCRIBE) is Verdict.ALLOWED
    # One that denies the use leaves the description to the others.
    others = [acl("orders", DESCRIBE), acl("orders", implying, DENY)]
    assert of_alice(others, "orders", DESCRIBE) is Verdict.ALLOWED


def test_configs_that_may_be_altered_may_be_described() -> None:
    altering = acl("orders", AclOperation.ALTER_CONFIGS)
    assert of_alice([altering], "orders", AclOperation.DESCRIBE_CONFIGS) is Verdict.ALLOWED
    assert of_alice([altering], "orders", DESCRIBE) is Verdict.DENIED


def test_an_acl_that_is_removed_counts_no_more() -> None:
    index = AclIndex([acl("orders"), acl("ord", WRITE, pattern=PREFIXED)])
    index.remove(acl("orders"))
    assert index.decide("User:alice", HOST, READ, TOPIC, "orders").verdict is Verdict.DENIED
    index.remove(acl("ord", WRITE, pattern=PREFIXED))
    assert index.decide("User:alice", HOST, READ, TOPIC, "orders").verdict is Verdict.NO_ACLS
    assert len(index) == 0
    with pytest.raises(KeyError):
        index.remove(acl("orders"))


# -- any resource -------------------------------------------------------------------------------------------


def anywhere(*acls: Acl) -> bool:
    return AclIndex(acls).may_anywhere("User:alice", HOST, WRITE, TOPIC)


def test_one_name_is_enough_to_write_somewhere() -> None:
    assert anywhere(acl("orders", WRITE))
    assert anywhere(acl("*", AclOperation.ALL, principal="User:*"), acl("orders", WRITE, DENY))
    assert not anywhere(acl("orders", READ), acl("orders", WRITE, principal="User:bob"))


def test_what_is_denied_as_a_whole_is_no_such_name() -> None:
    deny = acl("ord", WRITE, DENY, pattern=PREFIXED)
    assert not anywhere(acl("orders", WRITE), deny)
    assert not anywhere(acl("orders", WRITE, pattern=PREFIXED), deny)
    assert anywhere(acl("o", WRITE, pattern=PREFIXED), deny)
    assert not anywhere(acl("*", WRITE), acl("*", WRITE, DENY))


# -- beside the model ---------------------------------------------------------------------------------------

NAMES = ("*", "a", "aa", "ab", "abc", "b")
PRINCIPALS = ("User:alice", "User:bob", "User:*", "Group:alice")
HOSTS = ("*", HOST, "10.0.0.2")
OPERATIONS = [operation for operation in AclOperation if operation is not AclOperation.ANY]
ASKED = [operation for operation in OPERATIONS if operation is not AclOperation.ALL]

ACLS = st.builds(
    Acl,
    st.sampled_from((TOPIC, GROUP)),
    st.sampled_from(NAMES),
    st.sampled_from((LITERAL, PREFIXED)),
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from(OPERATIONS),
    st.sampled_from((ALLOW, DENY)),
)


@given(st.lists(ACLS, max_size=12), st.data())
def test_the_index_says_what_the_model_says(acls: list[Acl], data: st.DataObject) -> None:
    index = AclIndex(acls)
    for gone in data.draw(st.lists(st.sampled_from(acls), unique=True) if acls else st.just([])):
        index.remove(gone)
        acls.remove(gone)
    who, host = data.draw(st.sampled_from(PRINCIPALS)), data.draw(st.sampled_from(HOSTS))
    operation, kind = data.draw(st.sampled_from(ASKED)), data.draw(st.sampled_from((TOPIC, GROUP)))
    name = data.draw(st.sampled_from((*NAMES, "abcd")))

    assert index.decide(who, host, operation, kind, name).verdict is model.decide(
        acls, who, host, operation, kind, name
    )
    assert index.may_anywhere(who, host, operation, kind) == model.may_anywhere(
        acls, who, host, operation, kind
    )


def differs_from_model(chance: random.Random) -> bool:
    """Whether the index says something else than the model of one of many random questions."""
    for _ in range(8000):
        acls = [
            Acl(
                TOPIC,
                chance.choice(NAMES),
                chance.choice((LITERAL, PREFIXED)),
                chance.choice(PRINCIPALS),
                chance.choice(HOSTS),
                chance.choice((READ, WRITE, DESCRIBE, AclOperation.ALL)),
                chance.choice((ALLOW, ALLOW, DENY)),
            )
            for _ in range(chance.randint(0, 4))
        ]
        who, host, name = chance.choice(PRINCIPALS), chance.choice(HOSTS), chance.choice(NAMES)
        operation = chance.choice((READ, WRITE, DESCRIBE))
        index = AclIndex(acls)
        if index.decide(who, host, operation, TOPIC, name).verdict is not model.decide(
            acls, who, host, operation, TOPIC, name
        ):
            return True
        if index.may_anywhere(who, host, operation, TOPIC) != model.may_anywhere(
            acls, who, host, operation, TOPIC
        ):
            return True
    return False


def _without_wildcard(right: Any) -> Any:
    def concerning(names: Names, pattern_type: int, name: str) -> str | None:
        found: str | None = right(names, pattern_type, name)
        return None if pattern_type == LITERAL and found == "*" != name else found

    return concerning


def _nearest_name_only(right: Any) -> Any:
    def beginning_of(self: Names, name: str) -> str | None:
        before = [each for each in self.in_order() if each <= name][-1:]
        return before[0] if before and name.startswith(before[0]) else None

    return beginning_of


def _allow_wins(right: Any) -> Any:
    def decide(self: AclIndex, *asked: Any) -> Ruling:
        ruling: Ruling = right(self, *asked)
        if ruling.verdict is not Verdict.DENIED or ruling.acl is None:
            return ruling
        self.remove(ruling.acl)
        without = decide(self, *asked)
        self.add(ruling.acl)
        return without if without.verdict is Verdict.ALLOWED else ruling

    return decide


def _denied_prefixes_close_one_name(right: Any) -> Any:
    def left_by(self: Names, closing: Any) -> Any:
        return (name for name in self.in_order() if not any(name in each for each in closing))

    return left_by


def _nothing_is_implied(right: Any) -> Any:
    return {operation: {operation, AclOperation.ALL} for operation in AclOperation}


#: Mistakes, each as a change of one rule.
PLANTED: dict[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "an ACL for every name is overlooked": (module, "_concerning", _without_wildcard),
    "of several beginnings one is found": (Names, "beginning_of", _nearest_name_only),
    "a denied prefix closes only itself": (Names, "left_by", _denied_prefixes_close_one_name),
    "one that allows outweighs one that denies": (AclIndex, "decide", _allow_wins),
    "nothing is implied": (module, "_ALLOWED_BY", _nothing_is_implied),
    "an ACL for everybody is overlooked": (module, "EVERYBODY", lambda right: "User:nobody"),
    "an ACL for every host is overlooked": (module, "WILDCARD", lambda right: "none"),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not differs_from_model(random.Random(1))
    owner, name, wrong = PLANTED[bug]
    monkeypatch.setattr(owner, name, wrong(vars(owner)[name]))
    assert differs_from_model(random.Random(1))


# -- many ---------------------------------------------------------------------------------------------------


class Counted(str):
    """A name or a host that counts how often one is looked at."""

    looks = 0

    def __hash__(self) -> int:
        Counted.looks += 1
        return str.__hash__(self)

    def __eq__(self, other: object) -> bool:
        Counted.looks += 1
        return str.__eq__(self, other)

    def __lt__(self, other: str) -> bool:
        Counted.looks += 1
        return str.__lt__(self, other)

    def __gt__(self, other: str) -> bool:
        Counted.looks += 1
        return str.__gt__(self, other)


def looks(question: Callable[[], object]) -> int:
    """How often ACLs are looked at for the answer, once their names are in order."""
    question()
    before = Counted.looks
    question()
    return Counted.looks - before


COUNT = 100_000
#: Some binary searches among so many.
FEW = 300


def on_orders(index: AclIndex) -> Callable[[], Ruling]:
    return lambda: index.decide("User:alice", HOST, READ, TOPIC, "orders")


def test_a_decision_looks_at_few_of_many_acls_of_one_user_about_one_topic() -> None:
    index = AclIndex([acl("orders", host=Counted(f"host-{n}")) for n in range(COUNT)])
    assert on_orders(index)().verdict is Verdict.DENIED
    assert looks(on_orders(index)) < FEW
    index.add(acl("orders", permission=DENY, host=HOST))
    assert on_orders(index)() == Ruling(Verdict.DENIED, acl("orders", permission=DENY, host=HOST))


def test_a_decision_looks_at_few_of_many_acls_of_other_users_and_topics() -> None:
    acls = [acl(Counted(f"topic-{n}"), principal=f"User:{n % 100}") for n in range(COUNT)]
    acls += [acl("orders", principal=f"User:{n}") for n in range(1000)]
    index = AclIndex([*acls, acl("ord", pattern=PREFIXED)])
    assert on_orders(index)() == Ruling(Verdict.ALLOWED, acl("ord", pattern=PREFIXED))
    assert looks(on_orders(index)) < FEW


def test_a_decision_looks_at_few_of_many_prefixes_of_all_lengths() -> None:
    chance = random.Random(1)
    names = ["".join(chance.choices("abcdr", k=2 + n % 248)) for n in range(COUNT)]
    names = [name for name in names if not "orders".startswith("o" + name)]
    index = AclIndex([acl(Counted("o" + name), pattern=PREFIXED) for name in names])
    assert on_orders(index)().verdict is Verdict.NO_ACLS
    assert looks(on_orders(index)) < FEW
    index.add(acl("ord", pattern=PREFIXED))
    assert on_orders(index)().verdict is Verdict.ALLOWED


def writes_somewhere(index: AclIndex) -> Callable[[], bool]:
    return lambda: index.may_anywhere("User:alice", HOST, WRITE, TOPIC)


def test_one_name_of_many_is_enough_to_write_somewhere() -> None:
    index = AclIndex([acl(Counted(f"topic-{n}"), WRITE) for n in range(COUNT)])
    assert writes_somewhere(index)()
    assert looks(writes_somewhere(index)) < FEW


def test_many_names_are_passed_over_with_the_prefix_that_is_denied() -> None:
    index = AclIndex([acl(Counted(f"topic-{n}"), WRITE) for n in range(COUNT)])
    index.add(acl("topic-", WRITE, DENY, pattern=PREFIXED))
    assert not writes_somewhere(index)()
    assert looks(writes_somewhere(index)) < FEW


def test_many_names_that_others_may_read_are_not_looked_at_for_writing_somewhere() -> None:
    index = AclIndex([acl(Counted(f"topic-{n}"), READ) for n in range(COUNT)])
    assert not writes_somewhere(index)()
    assert looks(writes_somewhere(index)) < FEW
