"""Users, ACLs and TLS that a program gives to a `Broker` or a `Cluster`: their configuration keys, and the
metadata that a start writes.

Clients log in with SCRAM, whose credentials are in the metadata. The nodes log in to each other with PLAIN,
as the user `NODE`, because controllers elect their leader before they have read any credential.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pykafka_broker.authorization.index import WILDCARD
from pykafka_broker.broker.formatting import new_salt
from pykafka_broker.broker.security.acl_words import acl_in_words
from pykafka_broker.broker.security.client_settings import ClientSettings
from pykafka_broker.config.authorizer import STANDARD_AUTHORIZER
from pykafka_broker.config.sasl_listeners import LOGIN_MODULES
from pykafka_broker.controller.channel import ClusterAdministration
from pykafka_broker.controller.core.events import AlterScramCredentials, CreateAcls, ScramUpsertion
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.sasl.plain import PLAIN
from pykafka_broker.sasl.scram_keys import MIN_ITERATIONS, SCRAM_MECHANISMS, salted_password

if TYPE_CHECKING:
    from pykafka_broker.tls.authority import Authority

#: The user as which nodes log in to each other.
NODE = "__node"
MECHANISM = "SCRAM-SHA-512"
#: How long the certificates are valid.
DAYS = 365
#: Names of this machine that every certificate includes.
HERE = ("localhost", "127.0.0.1", "::1")


class Security:
    """The security of a `Broker` or a `Cluster`. One object may secure several, one after the other.

    With `users`, passwords by name, clients must log in with SCRAM. With `acls` or `super_users` only super
    users, and users with a matching ACL, are allowed anything: `acls` has texts such as "write topic orders"
    (`acl_words.py`) for a user, or for "*", all users. `tls` makes an authority, which signs the certificates
    of the nodes (needs the extra `tls`).

    Each start sets the passwords and creates missing ACLs; other users and ACLs in the metadata stay.

    Raises:
        ValueError: an ACL is malformed, or an ACL or super user names an unknown user.
        StoreError: `tls` needs a library that is not installed.
    """

    def __init__(
        self,
        users: Mapping[str, str] | None = None,
        *,
        acls: Mapping[str, Iterable[str]] | None = None,
        super_users: Iterable[str] = (),
        tls: bool = False,
    ) -> None:
        #: None: clients need not log in.
        self._users = None if users is None else dict(users)
        self._super_users = tuple(super_users)
        self._counts_acls = acls is not None or bool(self._super_users)
        if users is None and self._counts_acls:
            raise ValueError("acls and super_users are about users: name them")
        _check(self._users or {}, acls or {}, self._super_users)
        self._acls = tuple(acl_in_words(name, text) for name, texts in (acls or {}).items() for text in texts)
        self._node_password = secrets.token_hex(16)
        #: None: the listeners have no TLS.
        self._authority: Authority | None = None
        if tls:
            from pykafka_broker.tls.authority import Authority

            self._authority = Authority.new(datetime.now(UTC), DAYS)

    @property
    def protocol(self) -> str:
        """The security protocol of all listeners."""
        plain = "PLAINTEXT" if self._authority is None else "SSL"
        return plain if self._users is None else f"SASL_{plain}"

    def keys(self, listeners: Iterable[str], hosts: Iterable[str]) -> dict[str, str]:
        """The configuration keys of a node with these listeners and host names."""
        names = list(dict.fromkeys(listeners))
        keys = {"listener.security.protocol.map": ",".join(f"{name}:{self.protocol}" for name in names)}
        if self._users is not None:
            keys |= self._sasl(names)
        if self._counts_acls:
            keys["authorizer.class.name"] = STANDARD_AUTHORIZER
            keys["super.users"] = ";".join(f"User:{name}" for name in (NODE, *self._super_users))
        if self._authority is not None:
            keys |= _tls(self._authority, hosts)
        return keys

    def _sasl(self, listeners: Iterable[str]) -> dict[str, str]:
        node = f'username="{NODE}" password="{self._node_password}" user_{NODE}="{self._node_password}"'
        logins = {
            MECHANISM: f"{LOGIN_MODULES[MECHANISM]} required;",
            PLAIN: f"{LOGIN_MODULES[PLAIN]} required {node};",
        }
        return {
            "sasl.enabled.mechanisms": ",".join(logins),
            "sasl.mechanism.inter.broker.protocol": PLAIN,
            "sasl.mechanism.controller.protocol": PLAIN,
            **{
                f"listener.name.{name.lower()}.{mechanism.lower()}.sasl.jaas.config": login
                for name in listeners
                for mechanism, login in logins.items()
            },
        }

    async def write(self, controller: ClusterAdministration) -> None:
        """Let the active controller set the passwords and create missing ACLs.

        Raises:
            KafkaError: the controller refuses, or is not active.
        """
        for user in await controller.ask(AlterScramCredentials((), tuple(self._credentials()))):
            if user.error:
                raise KafkaError(user.error, f"The user {user.user} cannot be entered: {user.message}")
        results = await controller.ask(CreateAcls(tuple(self._acls)))
        for acl, result in zip(self._acls, results, strict=True):
            if result.error:
                raise KafkaError(result.error, f"{acl} cannot be created: {result.message}")

    def _credentials(self) -> list[ScramUpsertion]:
        mechanism = SCRAM_MECHANISMS[MECHANISM]
        credentials = []
        for name, password in (self._users or {}).items():
            salt = new_salt()
            salted = salted_password(mechanism, password, salt, MIN_ITERATIONS)
            credentials.append(ScramUpsertion(name, mechanism.type, MIN_ITERATIONS, salt, salted))
        return credentials

    def client_settings(self, bootstrap_servers: str, user: str | None) -> ClientSettings:
        """The settings of a user's clients.

        Raises:
            ValueError: there is no such user, or none is named although clients must log in.
        """
        settings = ClientSettings(
            bootstrap_servers,
            self.protocol,
            authority=None if self._authority is None else self._authority.own.certificate_pem.decode(),
        )
        if self._users is None and user is None:
            return settings
        users = self._users or {}
        if user is None or user not in users:
            raise ValueError(f"{user!r} is none of the users: {', '.join(users) or 'there are none'}")
        return replace(settings, user=user, password=users[user], mechanism=MECHANISM)


def _check(users: Mapping[str, str], acls: Mapping[str, Iterable[str]], super_users: Iterable[str]) -> None:
    if NODE in users or "" in users or "" in users.values():
        raise ValueError(f"a user needs a name, which is not {NODE}, and a password")
    for name in (*super_users, *acls):
        if name not in users and name != WILDCARD:
            raise ValueError(f"{name!r}, who shall have rights, is none of the users")
    for name, texts in acls.items():
        if isinstance(texts, str):
            raise ValueError(f"the ACLs of {name!r} are a list of texts, also where there is but one")


def _tls(authority: Authority, hosts: Iterable[str]) -> dict[str, str]:
    issued = authority.for_server(list(dict.fromkeys((*HERE, *hosts))))
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": issued.key_pem.decode(),
        "ssl.keystore.certificate.chain": issued.certificate_pem.decode(),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority.own.certificate_pem.decode(),
    }
