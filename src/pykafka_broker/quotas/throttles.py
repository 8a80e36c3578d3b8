"""The throttle of a client over its quota, as a decision for the history of the node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pykafka_broker.apis.ports.quotas import Quota
from pykafka_broker.machine.history import Decision, Kind
from pykafka_broker.quotas.accounts import Names, quota_of
from pykafka_broker.system.wording import argument, client_in_words, duration

if TYPE_CHECKING:
    from pykafka_broker.apis.ports.authorizer import Requester

UNITS = {
    Quota.PRODUCE: "bytes per second",
    Quota.FETCH: "bytes per second",
    Quota.REQUEST: "per cent of a core",
    Quota.CONTROLLER_MUTATION: "partitions per second",
}
SLOW_DOWN = "Let the client do less, or raise the quota with `pykafka-broker quotas set {}=NUMBER`."


def throttle(quota: Quota, limits: Mapping[Names, float], requester: Requester, wait_ms: int) -> Decision:
    """The client has to wait for `wait_ms` because of one of these quotas."""
    principal, client_id = requester.principal, requester.client_id or ""
    user = principal.partition(":")[2]
    names = quota_of(limits, user, client_id)
    assert names is not None, requester
    who = client_in_words(client_id, principal, requester.client_host)
    text = (
        f"{who} was throttled by the quota "
        f"{quota.value} of {entity(names)}: {limits[names]:,g} {UNITS[quota]}."
    )
    told = tuple(name for name in (client_id, principal, user) if name)
    remedy = SLOW_DOWN.format(f"{_options(names)} {quota.value}")
    return Decision(Kind.REQUEST, told, text, remedy, f" It is to wait {duration(wait_ms)}.")


def entity(names: Names) -> str:
    """The entity that a quota is set for: "user alice, the default client id"."""
    of_user, of_client_id = names
    said = (("user", of_user), ("client id", of_client_id))
    return ", ".join(
        f"the default {kind}" if name is None else f"{kind} {name}" for kind, name in said if name != ""
    )


def _options(names: Names) -> str:
    """The options of `quotas set` that name the entity: `--user alice --client-id-defaults`."""
    of_user, of_client_id = names
    return " ".join(
        f"--{kind}-defaults" if name is None else f"--{kind} {argument(name)}"
        for kind, name in (("user", of_user), ("client-id", of_client_id))
        if name != ""
    )
