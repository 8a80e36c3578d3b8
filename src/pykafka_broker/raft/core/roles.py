"""The roles of a replica of the metadata log, one frozen class each.

    Unattached  -> Candidate  the election timer ran out, or this is the only voter
    Candidate   -> Leader     a majority of the voters granted
    Leader      -> Resigned   it can no longer know that it leads
    Resigned    -> Candidate  the election timer ran out, or this is the only voter
    any         -> Follower or Unattached, when a higher epoch shows up

`epoch` never goes back. Prospective, the pre-vote before a real candidacy (KIP-996), is left out: it is
volatile, never found at boot, and a quorum of one has no other voter to ask.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Union

from pykafka_broker.raft.core.quorum import ReplicaKey
from pykafka_broker.system.named_tuple import NamedTuple


class Unattached(NamedTuple):
    """Knows the epoch, perhaps its leader's id but no address, perhaps the candidate it voted for; waits."""

    epoch: int
    leader_id: int | None = None
    voted: ReplicaKey | None = None


class Candidate(NamedTuple):
    """Asks for votes in an epoch that it began; `granted` includes itself."""

    epoch: int
    granted: frozenset[int]
    refused: frozenset[int] = frozenset()


class Leader(NamedTuple):
    """Appends for the whole quorum. `end_offsets` are the ends of the voters' logs known to be on disk.

    The high watermark is unknown (None) until a record of this very epoch is on a majority: only that commits
    the records of earlier leaders.
    """

    epoch: int
    start_offset: int
    end_offsets: Mapping[int, int]
    high_watermark: int | None = None


class Follower(NamedTuple):
    """Fetches from the leader of its epoch."""

    epoch: int
    leader_id: int
    high_watermark: int | None = None


class Resigned(NamedTuple):
    """Led this epoch and must not lead or vote in it again: it may have lost its last records."""

    epoch: int


Role = Union[Unattached, Candidate, Leader, Follower, Resigned]
