"""Share partitions as text: "group:topic id:partition".

FindCoordinator looks up such a key, and the key's hash decides which partition of `__share_group_state` has
the state. The text is parsed as in Java, and the hash is that of the text as Apache Kafka writes it.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode

from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.protocol.topic_partition import SharePartitionKey

_TOPIC_ID = re.compile("[A-Za-z0-9_-]{22}(==)?")
_PARTITION = re.compile("[+-]?[0-9]+")
_INT = range(-(1 << 31), 1 << 31)


def coordinator_key(key: SharePartitionKey) -> str:
    """The text of a share partition."""
    return f"{key.group_id}:{uuid_text(key.topic_id)}:{key.partition}"


def share_partition(text: str) -> SharePartitionKey:
    """The share partition of a text; the group's name may have colons.

    Raises:
        ValueError: the text is no such key.
    """
    words = text.split(":")
    while words and not words[-1]:
        words.pop()
    if len(words) < 3:
        raise ValueError(f"Invalid key format: expected - groupId:topicId:partition, found - {text}")
    *group, topic_id, partition = words
    group_id = ":".join(group)
    if not group_id.strip():
        raise ValueError("GroupId must not be empty")
    if not _TOPIC_ID.fullmatch(topic_id):
        raise ValueError(f"Invalid topic ID: {topic_id}")
    if not _PARTITION.fullmatch(partition) or int(partition) not in _INT:
        raise ValueError(f"Invalid partition: {partition}")
    return SharePartitionKey(group_id, urlsafe_b64decode(topic_id[:22] + "=="), int(partition))
