"""The text beside each offset that a replay commits: it names the replay. Pure.

For each partition that it writes, a replay commits the offset in the source after the last written record.
The text names the source, so that another replay does not take the progress for its own: the topic and, where
it is known, its id; the bounds of the window; the id of the topic that is written, for one that is created
anew has none of the records.
"""

from __future__ import annotations

import hashlib
import json

from pykafka_broker.system.named_tuple import NamedTuple

#: Brokers keep up to 4096 bytes (`offset.metadata.max.bytes`).
_MOST_BOUNDS = 1_000


class Claim(NamedTuple):
    """The source of a partition that is written."""

    topic: str
    partition: int
    #: "" if it is not known.
    topic_id: str
    #: The text of `bounds_of`.
    bounds: str
    target_id: str


def written(claim: Claim) -> str:
    """The text of a claim."""
    bounds = claim.bounds
    if len(bounds) > _MOST_BOUNDS:
        bounds = f"sha256 {hashlib.sha256(bounds.encode()).hexdigest()}"
    return "replay " + json.dumps(
        {
            "from": f"{claim.topic}-{claim.partition}",
            "topic_id": claim.topic_id,
            "bounds": bounds,
            "target_id": claim.target_id,
        },
        separators=(",", ":"),
    )


def difference(claim: Claim, text: str) -> str:
    """The reason why progress with this text is not of this replay, as part of a sentence; "" if it is."""
    ours = _fields(written(claim))
    theirs = _fields(text)
    if theirs is None or ours is None:
        return f"is not of a replay: {text[:80]!r} stands beside it"
    if theirs.get("target_id") != ours["target_id"]:
        return "is of a topic that was deleted since and created anew"
    if theirs.get("from") != ours["from"]:
        return f"is of records of {theirs.get('from')}, not of {ours['from']}"
    if theirs.get("topic_id") != ours["topic_id"]:
        return (
            f"is of the topic '{claim.topic}' with the id {theirs.get('topic_id') or 'unknown'}, not "
            f"{ours['topic_id'] or 'unknown'}"
        )
    if theirs.get("bounds") != ours["bounds"]:
        return f"is of another window: {theirs.get('bounds') or 'everything'}"
    return ""


def _fields(text: str) -> dict[str, str] | None:
    try:
        fields = json.loads(text.removeprefix("replay "))
    except ValueError:
        return None
    return fields if isinstance(fields, dict) else None
