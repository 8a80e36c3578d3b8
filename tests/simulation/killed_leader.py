"""A leader's process is killed while its machine and the network are well, as `kill -9` does it.

All others see the closed connection at the same moment, with logs of different lengths where the leader was
about to answer. They elect in their first round: two that stood at the same moment would split the votes, and
the next round would begin when the time of an election is over.
"""

from __future__ import annotations

from pykafka_broker.raft.core.roles import Leader
from tests.simulation.core_replica import CORE
from tests.simulation.quorum import ELECTION_MS, Quorum, run
from tests.simulation.replica import Kind
from tests.simulation.violation import check

#: From the kill until the new leader has committed.
LONGEST_MS = 400


class KilledLeader(Quorum):
    """A quorum of three or five voters, whose leader is killed at a moment of the seed."""

    def _run(self) -> None:
        world = self.world
        self.network.heal()
        for replica in self.replicas.values():
            world.at(world.random.randint(0, 500), replica.start)
        self._repeat(self.profile.append_ms, self._append)
        check(world.run_until(ELECTION_MS, self._has_leader), "no first leader")
        world.run_until(world.now_ms + world.random.randint(2000, 3000))
        [leader] = [replica for replica in self.replicas.values() if replica.is_leader]
        assert leader.state is not None
        epoch, killed_ms = leader.state.role.epoch, world.now_ms
        self._kill(leader)
        check(world.run_until(killed_ms + LONGEST_MS, self._has_leader), f"no leader {LONGEST_MS} ms later")
        epochs = [
            replica.state.role.epoch
            for replica in self.replicas.values()
            if replica.state is not None and isinstance(replica.state.role, Leader)
        ]
        check(epochs == [epoch + 1], f"leaders of {epochs} after {epoch}: the first round elected none")


def kill_leader(seed: int, kind: Kind = CORE) -> int:
    """Run a seed; return its number of events, or raise a Violation with a transcript."""
    faults = {"voters": 3 + 2 * (seed % 2), "auto_join": False}
    return run(seed, faults, kind, of=KilledLeader)
