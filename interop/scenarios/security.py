"""What every client has to be able to do on a secured listener, in each way into it."""

from __future__ import annotations

from interop.clients.client import Client, Record, Refused
from interop.world import World, eventually

#: TOPIC_AUTHORIZATION_FAILED
DENIED = 29


def works_in_its_own_topic(world: World, client: Client, user: str, topic: str) -> None:
    """It writes, reads back, and reads as a member of a group, where it can."""
    values = [b"one", b"two", b"three"]
    client.produce(topic, [Record(value) for value in values])
    assert [record.value for record in client.read(topic)] == values
    if client.can("member"):
        member = client.member(world.name(f"{user}-group"), topic)
        found: list[bytes | None] = []

        def is_all_there() -> bool:
            found.extend(record.value for record in member.poll(1))
            return len(found) >= len(values)

        try:
            eventually(is_all_there, "all is read by a member")
        finally:
            member.close()
        assert found == values


def is_denied_the_topic_of_others(client: Client, topic: str) -> None:
    """It learns why, from the code of the broker; nothing is written."""
    try:
        client.produce(topic, [Record(b"not allowed")])
    except Refused as refused:
        assert refused.code == DENIED, f"refused with {refused.code} instead of {DENIED}: {refused}"
    else:
        raise AssertionError("it was not refused")
