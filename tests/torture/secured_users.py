"""Users with passwords (SCRAM-SHA-512), and what each of them may do.

Passwords change while their users are connected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from ssl import create_default_context
from typing import Any, TypeVar

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from pykafka_broker.client.blocking import BlockingConnection
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.client.core.connection import ClientSecurity, Identity
from pykafka_broker.client.security import login_of
from tests.torture.clients import GROUP, TOPIC
from tests.torture.minority import TOPIC as OF_MINORITIES
from tests.torture.streams_application import COPY
from tests.torture.transfers import BALANCES, TRANSFERS
from tests.torture.users import Users

T = TypeVar("T")

MECHANISM = "SCRAM-SHA-512"
LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
#: Who may do nothing.
STRANGER = "stranger"
#: User, operation, kind of resource, and its name; with a * at the end, all names that begin so.
GRANTS = (
    ("writer", "write", "topic", TOPIC),
    ("writer", "write", "topic", OF_MINORITIES),
    ("reader", "read", "topic", TOPIC),
    ("reader", "read", "group", GROUP),
    ("member", "read", "topic", TOPIC),
    ("member", "read", "group", "readers-*"),
    ("teller", "write", "topic", TRANSFERS),
    ("teller", "write", "topic", BALANCES),
    ("teller", "write", "transactional_id", "teller"),
    ("auditor", "read", "topic", TRANSFERS),
    ("auditor", "read", "topic", COPY),
    ("clerk", "create", "topic", TOPIC),
    ("clerk", "describe", "topic", TOPIC),
    ("clerk", "create", "topic", OF_MINORITIES),
    ("clerk", "describe", "topic", OF_MINORITIES),
    ("clerk", "create", "topic", TRANSFERS),
    ("clerk", "create", "topic", BALANCES),
    ("clerk", "create", "topic", COPY),
    ("clerk", "create", "topic", "brief-*"),
    ("clerk", "delete", "topic", "brief-*"),
    ("spark", "read", "topic", TOPIC),
    ("spark", "read", "group", "spark-kafka-source-*"),
    ("copyist", "read", "topic", TOPIC),
    ("copyist", "write", "topic", COPY),
    ("copyist", "read", "group", "copyists"),
    ("copyist", "write", "transactional_id", "copyists-*"),
)
NAMES = tuple(sorted({user for user, *_ in GRANTS}))
#: A client in Java keeps the password that it was started with.
OF_JAVA = ("spark", "copyist")


def bindings() -> list[AclBinding]:
    """The ACLs of all grants."""
    return [
        AclBinding(
            ResourceType[kind.upper()],
            name.removesuffix("*"),
            ResourcePatternType.PREFIXED if name.endswith("*") else ResourcePatternType.LITERAL,
            f"User:{user}",
            "*",
            AclOperation[operation.upper()],
            AclPermissionType.ALLOW,
        )
        for user, operation, kind, name in GRANTS
    ]


class Learner:
    """A client that has the password of its user when it is called, also where that has changed.

    It learns in the thread that calls it: in another one it would wait for a consumer that always reads.
    """

    _users: SecuredUsers
    _user: str
    _password: str

    def know(self, users: SecuredUsers, user: str, password: str) -> None:
        """Belong to a user, with the password that it was made with."""
        self._users, self._user, self._password = users, user, password

    def learn(self) -> None:
        if (password := self._users.passwords[self._user]) != self._password:
            self._password = password
            self.set_sasl_credentials(self._user, password)  # type: ignore[attr-defined]


def learning(client: type[T], *calls: str) -> type[T]:
    """The class of clients that learn before each of these calls."""

    def learned(call: str) -> Callable[..., Any]:
        def learn_and_call(self: Any, *args: Any, **settings: Any) -> Any:
            self.learn()
            return getattr(client, call)(self, *args, **settings)

        return learn_and_call

    return type(f"Learning{client.__name__}", (Learner, client), {call: learned(call) for call in calls})


LearningProducer = learning(Producer, "poll", "begin_transaction", "commit_transaction", "abort_transaction")
LearningConsumer = learning(Consumer, "consume", "commit", "committed")
LearningAdmin = learning(AdminClient, "create_topics", "delete_topics", "list_topics")


class SecuredUsers(Users):
    """Each of them logs in over TLS, with the password of the moment."""

    def __init__(self, ca: Path) -> None:
        self._ca = ca
        self.passwords = {user: f"{user}-0" for user in (*NAMES, STRANGER)}

    def producer(self, user: str, settings: Mapping[str, Any]) -> Producer:
        return self._made(LearningProducer, user, settings)

    def consumer(self, user: str, settings: Mapping[str, Any]) -> Consumer:
        return self._made(LearningConsumer, user, settings)

    def admin(self, user: str, settings: Mapping[str, Any]) -> AdminClient:
        return self._made(LearningAdmin, user, settings)

    def connection(self, user: str, address: str) -> BlockingConnection:
        login = login_of(user, self.passwords[user], MECHANISM)
        security = ClientSecurity(login, lambda: create_default_context(cafile=str(self._ca)))
        return BlockingConnection(parse_address(address), identity=Identity(security=security))

    def _made(self, kind: Callable[[dict[str, Any]], T], user: str, settings: Mapping[str, Any]) -> T:
        password = self.passwords[user]
        login = {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self._ca),
            "sasl.mechanism": MECHANISM,
            "sasl.username": user,
            "sasl.password": password,
        }
        made = kind({**settings, **login})
        assert isinstance(made, Learner)
        made.know(self, user, password)
        return made

    def of_java(self, user: str) -> Mapping[str, str]:
        login = f'username="{user}" password="{self.passwords[user]}"'
        return {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._ca),
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": f"{LOGIN_MODULE} required {login};",
        }

    def format_options(self) -> Iterable[str]:
        """The options of `format` that make them."""
        for user, password in self.passwords.items():
            yield from ("--add-scram", f"{MECHANISM}=[name={user},password={password}]")
