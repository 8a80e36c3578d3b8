"""The timers and limits of a quorum: those of Kafka's configuration, and those derived from them."""

from __future__ import annotations

from pykafka_broker.raft.core.quorum import Address
from pykafka_broker.system.named_tuple import NamedTuple


class Settings(NamedTuple):
    """One replica's part of the configuration.

    `listener` is the listener whose addresses it uses: the first of `controller.listener.names`. `bootstrap`
    has the addresses of `controller.quorum.bootstrap.servers` or of `controller.quorum.voters`, which it asks
    for the leader while it knows none. `may_vote` is True for a node with the role controller: it may become
    a voter, so it acknowledges only records on its disk. `auto_join` is `controller.quorum.auto.join.enable`:
    such a node makes itself a voter.
    """

    listener: str = "CONTROLLER"
    bootstrap: tuple[Address, ...] = ()
    may_vote: bool = True
    auto_join: bool = False
    #: controller.quorum.election.timeout.ms; a random time of up to the same length is added.
    election_timeout_ms: int = 1000
    #: controller.quorum.election.backoff.max.ms
    election_backoff_max_ms: int = 1000
    #: controller.quorum.fetch.timeout.ms
    fetch_timeout_ms: int = 2000
    #: controller.quorum.request.timeout.ms
    request_timeout_ms: int = 2000
    #: controller.quorum.retry.backoff.ms
    retry_backoff_ms: int = 20
    #: How long a leader may park a Fetch.
    fetch_max_wait_ms: int = 500
    #: controller.quorum.fetch.snapshot.max.bytes
    snapshot_part_bytes: int = 1 << 20

    def election_deadline_ms(self, now_ms: int, chance: float) -> int:
        """When an election that starts now has failed, or a voter without a leader starts one."""
        return now_ms + self.election_timeout_ms + int(chance * self.election_timeout_ms)

    def election_in_order_ms(self, now_ms: int, chance: float, place: int) -> int:
        """When to start an election that other voters want at the same moment: after `place` of them.

        Each gets 5% of the election time-out, because simultaneous elections would split the votes.
        """
        share_ms = self.election_timeout_ms // 20
        return now_ms + place * share_ms + int(chance * share_ms) // 2

    @property
    def check_quorum_timeout_ms(self) -> int:
        """How long a leader leads without hearing from a majority."""
        return self.fetch_timeout_ms * 3 // 2

    @property
    def begin_epoch_interval_ms(self) -> int:
        """How often a leader sends BeginQuorumEpoch."""
        return self.fetch_timeout_ms // 2

    @property
    def silence_ms(self) -> int:
        """How long a bootstrap server without an answer is avoided: it may hang and cost another time-out."""
        return self.request_timeout_ms * 5

    @property
    def update_voter_interval_ms(self) -> int:
        """How often a follower compares itself with its entry among the voters."""
        return self.fetch_timeout_ms * 3


DEFAULTS = Settings()
