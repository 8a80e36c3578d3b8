"""ACLs as short texts, for programs: pure.

    write topic orders          the topic `orders`
    read topic orders-*         all topics whose names begin with `orders-`
    read group *                all groups
    deny alter topic orders     a denial, which overrides all permissions
    alter cluster               the cluster, which has no name
    create_tokens user bob      delegation tokens whose owner is `bob`

The words are those of kafka-acls, in upper or lower case: `describe_configs` or `DescribeConfigs`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeVar

from pykafka_broker.apis.ports.authorizer import CLUSTER_NAME, SUPPORTED_OPERATIONS, bit_field
from pykafka_broker.authorization.index import WILDCARD, Acl
from pykafka_broker.protocol.acls import AclOperation, AclPermission, AclResourceType, PatternType

#: The operations that ACLs of a resource type may have, besides ALL; some are in no response.
SUPPORTED = {
    **SUPPORTED_OPERATIONS,
    AclResourceType.TRANSACTIONAL_ID: SUPPORTED_OPERATIONS[AclResourceType.TRANSACTIONAL_ID]
    | bit_field(AclOperation.TWO_PHASE_COMMIT),
    AclResourceType.DELEGATION_TOKEN: bit_field(AclOperation.DESCRIBE),
    AclResourceType.USER: bit_field(AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}

Word = TypeVar("Word", bound=IntEnum)


def acl_in_words(user: str, text: str) -> Acl:
    """The ACL of a user, for all addresses; the user `*` stands for all users.

    Raises:
        ValueError: the text is not an ACL.
    """
    words = text.split(maxsplit=3)
    permission = AclPermission.ALLOW
    if words[:1] and words[0].lower() == "deny":
        permission = AclPermission.DENY
        del words[0]
    else:
        words = text.split(maxsplit=2)
    if len(words) < 2:
        raise ValueError(f"{text!r} is no ACL: say, for example, 'write topic orders'")
    operation = _meant(AclOperation, words[0])
    resource_type = _meant(AclResourceType, words[1])
    if operation is not AclOperation.ALL and not SUPPORTED[resource_type] & (1 << operation):
        raise ValueError(f"{text!r}: there is no {words[0]} of a {words[1]}")
    name = words[2].rstrip() if len(words) == 3 else ""
    if bool(name) is (resource_type is AclResourceType.CLUSTER):
        raise ValueError(f"{text!r}: {'the cluster has no name' if name else f'which {words[1]}? * is all'}")
    pattern = PatternType.LITERAL
    if name != WILDCARD and name.endswith(WILDCARD):
        name, pattern = name.removesuffix(WILDCARD), PatternType.PREFIXED
    if resource_type is AclResourceType.CLUSTER:
        name = CLUSTER_NAME
    elif resource_type is AclResourceType.USER and name != WILDCARD:
        name = f"User:{name}"
    return Acl(resource_type, name, pattern, f"User:{user}", WILDCARD, operation, permission)


def _meant(words: type[Word], text: str) -> Word:
    """The member with this name; ANY is only for filters."""
    plain = _plain(text)
    for word in words:
        if word.name != "ANY" and _plain(word.name) == plain:
            return word
    known = ", ".join(word.name.lower() for word in words if word.name != "ANY")
    raise ValueError(f"{text!r} is none of {known}")


def _plain(word: str) -> str:
    return word.replace("_", "").replace("-", "").lower()
