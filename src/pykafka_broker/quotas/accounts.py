"""The quota that applies to a client, and the clients that share it.

A quota may be set for eight kinds of entities. The most specific that matches a client applies:

    user and client id > user and default client id > user
    > default user and client id > default user and default client id > default user
    > client id > default client id

A quota for users, named or default, is shared by all clients of one user. A quota for client ids is shared by
all users with that client id. A quota for both is for the clients with that user and client id.
(Apache Kafka's ClientQuotaManager, DefaultQuotaCallback.)
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Optional

from pykafka_broker.cluster.image import QuotaEntity
from pykafka_broker.controller.core.client_quotas import CLIENT_ID, USER

#: User and client id of a quota: None is the default, "" means that the quota ignores it.
Names = tuple[Optional[str], Optional[str]]
#: The user and the client id whose use is counted together; "" for any.
Account = tuple[str, str]


def limits_of(quotas: Mapping[QuotaEntity, Mapping[str, float]], key: str) -> dict[Names, float]:
    """The bounds of the quota `key`, by the user and client id that they are for."""
    limits: dict[Names, float] = {}
    for entity, values in quotas.items():
        names = dict(entity)
        if key in values and (USER in names or CLIENT_ID in names):
            limits[names.get(USER, ""), names.get(CLIENT_ID, "")] = values[key]
    return limits


def account_of(limits: Mapping[Names, float], user: str, client_id: str) -> tuple[Account, float]:
    """The account to which a client's use counts, and its bound; infinite if no quota applies."""
    names = quota_of(limits, user, client_id)
    if names is None:
        return ("", client_id), inf
    of_user, of_client_id = names
    return ("" if of_user == "" else user, "" if of_client_id == "" else client_id), limits[names]


def quota_of(limits: Mapping[Names, float], user: str, client_id: str) -> Names | None:
    """The quota that applies to a client, or None."""
    if client_id:
        candidates: tuple[Names, ...] = (
            *((user, client_id), (user, None), (user, "")),
            *((None, client_id), (None, None), (None, "")),
            *(("", client_id), ("", None)),
        )
    else:
        # Without a client id only quotas for users apply, not those for a user and the default client id.
        candidates = ((user, ""), (None, ""))
    for names in candidates:
        if names in limits:
            return names
    return None
