"""The settings of the authorizer: keys that Kafka's StandardAuthorizer reads, and its broker does not know.

DescribeConfigs shows them as unknown keys, as in Apache Kafka.
"""

from __future__ import annotations

from pykafka_broker.authorization.rules import StandardRules
from pykafka_broker.config.keys import ACTS, BOOLEAN, MEDIUM, READ_ONLY, STRING, ConfigError, Key
from pykafka_broker.config.typed_values import TypedValues

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SUPER_USERS = "super.users"
ALLOW_EVERYONE = "allow.everyone.if.no.acl.found"


# fmt: off
AUTHORIZER_KEYS: tuple[Key, ...] = (
    Key(SUPER_USERS, STRING, "", None, MEDIUM, READ_ONLY, ACTS,
        "Principals that may do everything, separated by semicolons: `User:alice;User:CN=node1,O=us`."),
    Key(ALLOW_EVERYONE, BOOLEAN, False, None, MEDIUM, READ_ONLY, ACTS,
        "Whether every principal may do everything with a resource that no ACL concerns."),
)
# fmt: on


def authorizer_rules(values: TypedValues, originals: dict[str, str]) -> StandardRules | None:
    """The rules of the authorizer that `authorizer.class.name` names; None if it names none.

    Raises:
        ConfigError: it names another than Kafka's StandardAuthorizer, or a super user is no principal.
    """
    name = values["authorizer.class.name"]
    if not name:
        return None
    if name != STANDARD_AUTHORIZER:
        raise ConfigError(
            f"authorizer.class.name is {name}, but this broker has only {STANDARD_AUTHORIZER}. "
            "Going on without it would be unsafe."
        )
    users = [user.strip() for user in originals.get(SUPER_USERS, "").split(";")]
    for user in users:
        if user and ":" not in user:
            raise ConfigError(
                f"{SUPER_USERS}: expected a string in format principalType:principalName but got {user}"
            )
    allows_everyone = originals.get(ALLOW_EVERYONE, "").strip().lower() == "true"
    return StandardRules(frozenset(filter(None, users)), allows_everyone)
