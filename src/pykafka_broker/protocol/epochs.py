"""The epochs that clients send: those of the members of groups, and those of their sessions with a broker.

Members of consumer, share and streams groups (KIP-848, KIP-932, KIP-1071) send theirs in heartbeats. Every
request of a fetch session (KIP-227) and of a share session (KIP-932) has the epoch of the session.
"""

from __future__ import annotations

#: A member joins, leaves, or leaves temporarily as a static member.
JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2

#: INITIAL_EPOCH begins a session, FINAL_EPOCH ends it. A Fetch without a session sends FINAL_EPOCH.
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
MAX_EPOCH = 2**31 - 1
#: The session id of a fetch without a session, and of one that begins a session.
NO_SESSION_ID = 0


def next_epoch(epoch: int) -> int:
    """The epoch of a session after `epoch`: 1 follows the largest, because 0 begins a session."""
    return 1 if epoch == MAX_EPOCH else epoch + 1
