"""What the heartbeats of consumer, share and streams groups have in common: their checks and refusals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from pykafka_broker.protocol.errors import ErrorCode, KafkaError

#: The interval after which a group checks its topics even if none has changed.
METADATA_REFRESH_INTERVAL_MS = 2**31 - 1
#: The rebalance time-out in a heartbeat that sets none.
NOT_GIVEN_MS = -1

Member = TypeVar("Member", covariant=True)


class GroupOf(Protocol[Member]):
    """A group with such members."""

    @property
    def group_id(self) -> str: ...

    @property
    def members(self) -> Mapping[str, Member]: ...


def member_named(group: GroupOf[Member], member_id: str) -> Member:
    """The member with this id.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID.

    """
    member = group.members.get(member_id)
    if member is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}."
        )
    return member


def is_time_for_a_target(made_ms: int, interval_ms: int, now_ms: int) -> bool:
    """May a target follow that of `made_ms` (0: there is none), with this interval between targets?

    The time of the last one is in its record. If it is still to come, the clock was set back, or the clock of
    the broker that wrote it is ahead: no target waits for that, unlike in Apache Kafka 4.3.
    """
    return not made_ms or not made_ms <= now_ms < made_ms + interval_ms


def check_not_blank(text: str | None, field: str) -> None:
    """Refuse a text of white space only.

    Raises:
        KafkaError: INVALID_REQUEST.

    """
    if text is not None and not text.strip():
        raise invalid(f"{field} can't be empty.")


def invalid(message: str) -> KafkaError:
    """The refusal of a heartbeat that no group could accept."""
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def fenced(kind: str, received_epoch: int, member_epoch: int) -> KafkaError:
    """The refusal of a heartbeat with another epoch than that of the member, in a group of this kind."""
    compared = "smaller" if received_epoch < member_epoch else "greater"
    return KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The {kind} group member has a {compared} member epoch ({received_epoch}) than the one known by the "
        f"group coordinator ({member_epoch}). The member must abandon all its partitions and rejoin.",
    )
