"""The voters of the quorum, and the counts over them: majorities, the high watermark (KIP-595, KIP-853)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pykafka_broker.protocol.messages.records import control as m
from pykafka_broker.system.named_tuple import NamedTuple

#: The directory id of a replica whose directory is not known; it matches every directory.
UNKNOWN_DIRECTORY = bytes(16)

#: Host and port.
Address = tuple[str, int]
#: Where a replica is reached, by the name of the listener.
Endpoints = Mapping[str, Address]


class ReplicaKey(NamedTuple):
    """One copy of the log: a node and its directory, because a new disk makes a new copy."""

    node_id: int
    directory_id: bytes = UNKNOWN_DIRECTORY

    def matches(self, other: ReplicaKey) -> bool:
        """Whether both may be the same copy."""
        if self.node_id != other.node_id:
            return False
        return UNKNOWN_DIRECTORY in (self.directory_id, other.directory_id) or self == other


class Voter(NamedTuple):
    """A copy that votes, where it is reached by listener name, and the kraft.version levels it supports."""

    key: ReplicaKey
    endpoints: Endpoints
    kraft_versions: tuple[int, int] = (0, 1)

    def supports(self, kraft_version: int) -> bool:
        """Whether this level of kraft.version is in its range."""
        least, greatest = self.kraft_versions
        return least <= kraft_version <= greatest


class VoterSet(NamedTuple):
    """The voters, by node id."""

    voters: Mapping[int, Voter]

    def is_voter(self, key: ReplicaKey) -> bool:
        """Whether this copy votes; another directory of the same node does not."""
        voter = self.voters.get(key.node_id)
        return voter is not None and voter.key.matches(key)

    def is_only_voter(self, key: ReplicaKey) -> bool:
        """Whether this copy is its own majority."""
        return len(self.voters) == 1 and self.is_voter(key)

    def others(self, node_id: int) -> tuple[Voter, ...]:
        """All voters but one."""
        return tuple(voter for voter in self.voters.values() if voter.key.node_id != node_id)

    def endpoints_of(self, node_id: int) -> Endpoints:
        """The endpoints of a voter; empty if the node does not vote."""
        voter = self.voters.get(node_id)
        return {} if voter is None else voter.endpoints

    def with_voter(self, voter: Voter) -> VoterSet:
        """These voters and `voter`, which replaces an entry of the same node."""
        return VoterSet({**self.voters, voter.key.node_id: voter})

    def without_voter(self, node_id: int) -> VoterSet:
        """These voters but one."""
        return VoterSet({voter.key.node_id: voter for voter in self.others(node_id)})

    def to_record(self) -> m.VotersRecord:
        """The control record that names these voters."""
        return m.VotersRecord(
            version=0,
            voters=[
                m.VotersRecordVoter(
                    voter_id=voter.key.node_id,
                    voter_directory_id=voter.key.directory_id,
                    endpoints=[
                        m.Endpoint(name=name, host=host, port=port)
                        for name, (host, port) in voter.endpoints.items()
                    ],
                    kraft_version_feature=m.KRaftVersionFeature(
                        min_supported_version=voter.kraft_versions[0],
                        max_supported_version=voter.kraft_versions[1],
                    ),
                )
                for voter in self.voters.values()
            ],
        )

    @classmethod
    def from_record(cls, record: m.VotersRecord) -> VoterSet:
        """The voters that a control record names."""
        voters = {}
        for voter in record.voters:
            levels = voter.kraft_version_feature
            voters[voter.voter_id] = Voter(
                ReplicaKey(voter.voter_id, voter.voter_directory_id),
                {endpoint.name: (endpoint.host, endpoint.port) for endpoint in voter.endpoints},
                (levels.min_supported_version, levels.max_supported_version),
            )
        return cls(voters)


NO_VOTERS = VoterSet({})


def is_majority(count: int, voters: int) -> bool:
    """Whether `count` is a majority of `voters`."""
    return count > voters // 2


def majority_offset(end_offsets: Iterable[int]) -> int:
    """The log end offset that a majority of the voters has reached."""
    ordered = sorted(end_offsets, reverse=True)
    return ordered[len(ordered) // 2]
