"""One offset that a group has committed for a partition."""

from __future__ import annotations

from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.system.named_tuple import NamedTuple

NO_EXPIRY = -1
LATEST_TIMESTAMP_MS = 2**63 - 1


class CommittedOffset(NamedTuple):
    """One committed offset."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = -1
    #: When the commit carried its own retention (OffsetCommit v2-4).
    expire_timestamp_ms: int = NO_EXPIRY
    topic_id: bytes = ZERO_UUID

    def is_for(self, topic_id: bytes) -> bool:
        """False if the offset was committed to another topic that had the same name."""
        return topic_id == self.topic_id or ZERO_UUID in (topic_id, self.topic_id)
