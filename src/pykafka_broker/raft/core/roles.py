"""The roles of a replica of the metadata log, one frozen class each.

    Unattached   -> Prospective  the election timer ran out
    Follower     -> Prospective  the leader was silent for too long, or said that it resigns
    Prospective  -> Candidate    a majority would vote for it (KIP-996)
    Prospective  -> Follower     a majority would not, and it knew a leader; else -> Unattached
    Candidate    -> Leader       a majority of the voters granted
    Candidate    -> Prospective  the election failed
    Leader       -> Resigned     no majority fetches, the node stops, or its removal is committed
    Resigned     -> Unattached   in the next epoch, when the election timer ran out
    any          -> Follower or Unattached, when a higher epoch shows up

`epoch` never goes back. Only voters become Prospective; an observer is Unattached or Follower. Deadlines are
in milliseconds on the clock of the events; None: never.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Union

from pykafka_broker.raft.core.log_view import SnapshotId
from pykafka_broker.raft.core.messages import AddVoter, Fetch
from pykafka_broker.raft.core.quorum import Endpoints, ReplicaKey, Voter
from pykafka_broker.system.named_tuple import NamedTuple


class Unattached(NamedTuple):
    """Knows the epoch but no address of its leader; asks the bootstrap servers for the leader."""

    epoch: int
    leader_id: int | None = None
    voted: ReplicaKey | None = None
    election_deadline_ms: int | None = None


class Prospective(NamedTuple):
    """Asks for pre-votes; `granted` includes itself.

    `fetch_deadline_ms` is set if it asks before its leader's time is over, because the leader's process has
    ended.
    """

    epoch: int
    leader_id: int | None
    endpoints: Endpoints
    voted: ReplicaKey | None
    granted: frozenset[int]
    refused: frozenset[int] = frozenset()
    election_deadline_ms: int = 0
    fetch_deadline_ms: int | None = None


class Candidate(NamedTuple):
    """Asks for votes in an epoch that it began; `granted` includes itself."""

    epoch: int
    granted: frozenset[int]
    refused: frozenset[int] = frozenset()
    election_deadline_ms: int = 0


class Download(NamedTuple):
    """A snapshot whose bytes before `position` have been received; it is installed when complete."""

    snapshot_id: SnapshotId
    position: int = 0
    is_complete: bool = False


class Follower(NamedTuple):
    """Fetches from the leader of its epoch.

    `has_fetched` is True once the leader has answered: until the leader times out, the follower refuses
    pre-votes. `election_deadline_ms` is set when the leader has timed out or its address refuses connections:
    from then on the follower grants pre-votes, and at this deadline it starts its own election. `has_updated`
    is True once the leader knows this voter's entry, which the upgrade of kraft.version needs.
    """

    epoch: int
    leader_id: int
    endpoints: Endpoints
    has_fetched: bool = False
    election_deadline_ms: int | None = None
    has_updated: bool = False
    download: Download | None = None
    fetch_deadline_ms: int | None = None
    update_deadline_ms: int | None = None

    def hears_leader(self, now_ms: int) -> bool:
        """Whether the leader may be alive: it has answered, has not timed out, and its process has not ended.

        An observer keeps this role when its leader is gone.
        """
        if not self.has_fetched or self.election_deadline_ms is not None:
            return False
        return self.fetch_deadline_ms is None or now_ms < self.fetch_deadline_ms


class Progress(NamedTuple):
    """What the leader knows of another replica. Times are -1 before the first Fetch.

    `end_offset` is the offset of its last Fetch: it has the records below on disk. `leader_end_offset` is
    where the leader's log ended at that time.
    """

    end_offset: int = -1
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1
    leader_end_offset: int = -1


class ParkedFetch(NamedTuple):
    """A Fetch without news, and when it is answered at the latest."""

    token: int
    request: Fetch
    deadline_ms: int


class VoterChange(NamedTuple):
    """The one change of the voters that is under way, and the request that waits for it.

    `adding` is the request while the leader asks the new voter for its versions. `offset` is that of the
    record, -1 before it is appended.
    """

    token: int
    deadline_ms: int
    offset: int = -1
    adding: AddVoter | None = None


class Leader(NamedTuple):
    """Appends for the whole quorum.

    The high watermark is unknown (None) until a majority has a record of this epoch: only that commits the
    records of earlier leaders. `progress` has other replicas, voters and observers. `heard` has the voters
    that fetched since the check-quorum timer was set. `reported` has the voters that have sent
    UpdateRaftVoter while kraft.version is 0.
    """

    epoch: int
    start_offset: int
    high_watermark: int | None = None
    progress: Mapping[ReplicaKey, Progress] = {}
    parked: tuple[ParkedFetch, ...] = ()
    change: VoterChange | None = None
    heard: frozenset[int] = frozenset()
    reported: Mapping[int, Voter] = {}
    check_quorum_deadline_ms: int | None = None
    begin_epoch_deadline_ms: int | None = None


class Resigned(NamedTuple):
    """Led this epoch and must not lead or vote in it again: it may have lost its last records.

    It sends EndQuorumEpoch to the `unaware` voters, with the `successors`, the longest log first.
    """

    epoch: int
    successors: tuple[ReplicaKey, ...] = ()
    unaware: frozenset[int] = frozenset()
    election_deadline_ms: int | None = None


Role = Union[Unattached, Prospective, Candidate, Leader, Follower, Resigned]
