"""What the authorizer that reads ACLs decides, and what its log tells."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import pytest

from pykafka_broker.apis.ports.authorizer import AclOperation, AclResourceType
from pykafka_broker.authorization.rules import StandardRules
from pykafka_broker.broker.security.acl_authorizer import StandardAuthorizer
from pykafka_broker.broker.security.audit_log import MAX_LINES
from pykafka_broker.broker.security.told_denials import REMOVE
from pykafka_broker.cli.logging_setup import JsonFormatter
from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.machine.history import Decision, Kind
from pykafka_broker.protocol.acls import AclPermission, PatternType
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.records.metadata import AccessControlEntryRecord
from pykafka_broker.system.named_tuple import NamedTuple

READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
TOPIC, GROUP = AclResourceType.TOPIC, AclResourceType.GROUP
ALLOW, DENY = AclPermission.ALLOW, AclPermission.DENY
FETCH = 1
LOG = "kafka.authorizer.logger"


class Client(NamedTuple):
    """Whose request it is."""

    principal: str = "User:alice"
    client_host: str = "/10.0.0.1"
    api_key: int = FETCH
    client_id: str | None = None

    @property
    def log_fields(self) -> Mapping[str, object]:
        return {"principal": self.principal, "api": "Fetch"}


ALICE, ROOT = Client(), Client("User:root")


class Node:
    """An authorizer, the metadata that it follows, and time."""

    def __init__(self, *, allows_everyone: bool = False) -> None:
        self.now_ms = 0
        rules = StandardRules(frozenset({"User:root"}), allows_everyone)
        self.told: list[Decision] = []
        self.authorizer = StandardAuthorizer(rules, lambda: self.now_ms, self.told.append)
        self.image = ClusterImage()

    def publish(self, *acls: AccessControlEntryRecord) -> Node:
        """Exactly these ACLs are in the metadata now."""
        draft = self.image.acls.draft()
        for gone in set(draft) - {acl.id for acl in acls}:
            del draft[gone]
        draft.update({acl.id: acl for acl in acls})
        new = self.image._replace(acls=draft.finished())
        self.authorizer.published(self.image, new)
        self.image = new
        return self

    def may(self, client: Client, operation: AclOperation = READ, name: str = "orders") -> bool:
        return self.authorizer.allows(client, operation, TOPIC, name)


def acl(
    number: int, operation: AclOperation = READ, permission: AclPermission = ALLOW, **changes: object
) -> AccessControlEntryRecord:
    values = {
        "id": number.to_bytes(16, "big"),
        "resource_type": TOPIC,
        "resource_name": "orders",
        "pattern_type": PatternType.LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": operation,
        "permission_type": permission,
    }
    return AccessControlEntryRecord(**{**values, **changes})  # type: ignore[arg-type]


# -- decisions ----------------------------------------------------------------------------------------------


def test_without_acls_only_super_users_may_do_anything() -> None:
    node = Node().publish()
    assert node.may(ROOT)
    assert not node.may(ALICE)


def test_everyone_may_do_everything_with_what_no_acl_concerns_if_so_configured() -> None:
    node = Node(allows_everyone=True).publish(acl(1, principal="User:bob"))
    assert node.may(ALICE, name="payments")
    assert not node.may(ALICE)


def test_acls_count_from_the_moment_in_which_they_are_published() -> None:
    node = Node().publish(acl(1))
    assert (node.may(ALICE), node.may(ALICE, WRITE)) == (True, False)
    node.publish(acl(1), acl(2, WRITE))
    assert (node.may(ALICE), node.may(ALICE, WRITE)) == (True, True)
    node.publish(acl(2, WRITE))
    assert (node.may(ALICE), node.may(ALICE, WRITE)) == (False, True)


def test_an_acl_that_replaces_one_with_its_id_counts_alone() -> None:
    node = Node().publish(acl(1)).publish(acl(1, WRITE))
    assert (node.may(ALICE), node.may(ALICE, WRITE)) == (False, True)


def test_before_the_metadata_is_read_only_super_users_are_served() -> None:
    node = Node(allows_everyone=True)
    assert node.may(ROOT)
    with pytest.raises(KafkaError) as refusal:
        node.may(ALICE)
    assert refusal.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_an_address_is_compared_as_java_writes_it() -> None:
    node = Node().publish(acl(1, host="0:0:0:0:0:0:0:1"))
    assert node.may(Client(client_host="/0:0:0:0:0:0:0:1"))
    assert not node.may(ALICE)


def test_names_that_are_allowed_keep_their_order() -> None:
    node = Node().publish(acl(1), acl(2, resource_name="a"))
    asked = ["z", "orders", "b", "a"]
    assert node.authorizer.filter(ALICE, READ, TOPIC, asked) == ["orders", "a"]
    assert node.authorizer.filter(ROOT, READ, TOPIC, asked) == asked


def test_it_tells_the_operations_that_are_allowed() -> None:
    node = Node().publish(acl(1), acl(2, AclOperation.ALTER_CONFIGS))
    told = node.authorizer.operations(ALICE, TOPIC, "orders")
    allowed = {operation for operation in AclOperation if told & (1 << operation)}
    assert allowed == {READ, DESCRIBE, AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS}
    assert node.authorizer.operations(ALICE, GROUP, "g") == 0


@pytest.mark.parametrize(
    ("allows_everyone", "acls", "client", "may"),
    [
        (False, [], ALICE, False),
        (False, [], ROOT, True),
        (True, [], ALICE, True),
        (False, [acl(1, WRITE)], ALICE, True),
        (False, [acl(1)], ALICE, False),
        (True, [acl(1, WRITE, DENY, resource_name="*")], ALICE, False),
    ],
)
def test_to_write_somewhere_takes_one_topic(
    allows_everyone: bool, acls: Iterable[AccessControlEntryRecord], client: Client, may: bool
) -> None:
    node = Node(allows_everyone=allows_everyone).publish(*acls)
    assert node.authorizer.allows_somewhere(client, WRITE, TOPIC) is may


# -- the log ------------------------------------------------------------------------------------------------


def test_a_denial_is_told_in_the_words_of_kafka(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger=LOG)
    node = Node().publish(acl(1, WRITE, DENY))
    node.may(ALICE)
    node.may(ALICE, WRITE)
    asked = "from host = 10.0.0.1 on resource = Topic:LITERAL:orders for request = Fetch"
    rule = (
        "MatchingAcl(acl=StandardAcl(resourceType=TOPIC, resourceName=orders, patternType=LITERAL, "
        "principal=User:alice, host=*, operation=WRITE, permissionType=DENY))"
    )
    assert caplog.messages == [
        f"Principal = User:alice is Denied operation = READ {asked} with resourceRefCount = 1 "
        "based on rule DefaultDeny",
        f"Principal = User:alice is Denied operation = WRITE {asked} with resourceRefCount = 1 "
        f"based on rule {rule}",
    ]
    told = json.loads(JsonFormatter().format(caplog.records[0]))
    assert (told["principal"], told["api"]) == ("User:alice", "Fetch")


def test_what_is_allowed_is_told_where_details_are_wanted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger=LOG)
    node = Node(allows_everyone=True).publish(acl(1))
    node.may(ALICE)
    assert caplog.messages == []
    caplog.set_level("DEBUG", logger=LOG)
    for client, name in ((ALICE, "orders"), (ROOT, "orders"), (ALICE, "other")):
        node.may(client, name=name)
    assert [message.partition("based on rule ")[2].partition("(")[0] for message in caplog.messages] == [
        "MatchingAcl",
        "SuperUser",
        "DefaultAllow",
    ]


def test_what_was_not_attempted_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger=LOG)
    node = Node().publish()
    node.authorizer.filter(ALICE, READ, TOPIC, ["orders"], is_attempt=False)
    node.authorizer.operations(ALICE, TOPIC, "orders")
    node.authorizer.allows_somewhere(ALICE, WRITE, TOPIC)
    assert caplog.messages == []


def test_a_denial_that_repeats_is_told_with_a_count(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger=LOG)
    node = Node().publish()
    for _ in range(5):
        node.may(ALICE)
    assert len(caplog.messages) == 1
    node.now_ms += 10_000
    node.may(ALICE)
    assert caplog.messages[1].endswith("(4 more of these since the last such line)")


def test_a_client_that_tries_the_same_without_end_does_not_hide_what_others_try(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger=LOG)
    node = Node().publish()
    for _ in range(MAX_LINES + 7):
        node.may(ALICE)
    node.may(ALICE, name="secrets")
    assert len(caplog.messages) == 2
    assert "TOPIC:LITERAL:secrets" in caplog.messages[1].upper().replace("SECRETS", "secrets")


def test_a_client_that_tries_names_without_end_does_not_fill_the_disk(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger=LOG)
    node = Node().publish()
    for number in range(MAX_LINES + 7):
        node.may(ALICE, name=f"t{number}")
    assert len(caplog.messages) == MAX_LINES
    node.now_ms += 10_000
    node.may(ALICE, name="more")
    assert caplog.messages[MAX_LINES] == "7 more operations were denied, which are not logged one by one"


# -- the history --------------------------------------------------------------------------------------------


def test_a_denial_is_told_with_the_acl_that_denies_or_that_there_is_none() -> None:
    node = Node().publish(acl(1, WRITE, DENY, principal="User:*"), acl(2))
    app = ALICE._replace(client_id="app")

    assert (node.may(app), node.may(app, WRITE), node.may(app, DESCRIBE, "clicks")) == (True, False, False)
    node.authorizer.filter(app, DESCRIBE, TOPIC, ["clicks"], is_attempt=False)

    names = ("app", "User:alice", "alice")
    assert node.told == [
        Decision(
            Kind.REQUEST,
            names,
            "Client app (User:alice, 10.0.0.1) was denied WRITE on topic orders in a request Fetch: this ACL "
            "denies it: User:* from * is DENY WRITE on topic orders (literal).",
            REMOVE,
        ),
        Decision(
            Kind.REQUEST,
            names,
            "Client app (User:alice, 10.0.0.1) was denied DESCRIBE on topic clicks in a request Fetch: no "
            "ACL allows it (DefaultDeny).",
            "If it is to be allowed, add an ACL: `pykafka-broker acls add --allow-principal User:alice "
            "--operation describe --topic clicks`.",
        ),
    ]
