"""Short words for the requests about client quotas."""

from __future__ import annotations

from typing import Any

from pykafka_broker.protocol.messages import alter_client_quotas as altering
from pykafka_broker.protocol.messages import describe_client_quotas as describing
from pykafka_broker.testing.user import User

#: The names of an entity by type; "client_id" stands for "client-id".
Names = dict[str, str | None]


def entity_of(names: Names) -> list[altering.EntityData]:
    return [
        altering.EntityData(entity_type=kind.replace("_", "-"), entity_name=name)
        for kind, name in names.items()
    ]


def setting(names: Names, **quotas: float | None) -> altering.AlterClientQuotasRequestEntryData:
    """An entry that sets quotas, and removes those that are None."""
    return altering.AlterClientQuotasRequestEntryData(
        entity=entity_of(names),
        ops=[
            altering.OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in quotas.items()
        ],
    )


async def set_quotas(user: User, names: Names, **quotas: float | None) -> None:
    """Set quotas; they are in force on the broker that is asked when this returns."""
    request = altering.AlterClientQuotasRequest(entries=[setting(names, **quotas)], validate_only=False)
    answer = await user.send(request, 1)
    assert [(entry.error_code, entry.error_message) for entry in answer.entries] == [(0, None)]


def component(kind: str, match_type: int, match: str | None = None) -> describing.ComponentData:
    return describing.ComponentData(entity_type=kind, match_type=match_type, match=match)


async def described(
    user: User, *components: describing.ComponentData, strict: bool = False, version: int = 1
) -> list[tuple[Any, dict[str, float]]]:
    """The names and the quotas of the entities found."""
    request = describing.DescribeClientQuotasRequest(components=list(components), strict=strict)
    answer = await user.send(request, version)
    assert (answer.error_code, answer.error_message) == (0, "")
    return [
        (
            {part.entity_type: part.entity_name for part in entry.entity},
            {value.key: value.value for value in entry.values},
        )
        for entry in answer.entries
    ]
