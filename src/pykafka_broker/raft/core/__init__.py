"""The pure part of KRaft: no disk, no network, no clock, no dice.

transitions.py        boot and step: which function handles which event; the next deadline
state.py              a replica, the events it takes, the steps it returns
roles.py              Unattached, Prospective, Candidate, Leader, Follower, Resigned
elections.py          Vote, with pre-votes: granting, requesting and counting votes
announcing.py         BeginQuorumEpoch, EndQuorumEpoch: a leader begins and resigns
leading.py            Fetch on the leader: divergence, parked fetches, the check of the quorum
following.py          Fetch on the follower: finding the leader, truncation, replication
snapshot_fetching.py  FetchSnapshot, on both sides
voter_changes.py      AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter, the upgrade of kraft.version: the leader
voter_updates.py      a follower's own entry among the voters
progress.py           how far the replicas are: high watermark, check of the quorum
describe.py           the facts of DescribeQuorum
common.py             common to all RPCs: epochs, the leader that an answer names
turn.py               one step while it is decided; the changes of roles
log_view.py           the facts of the log: ends, epochs, snapshots, voters by their records
quorum.py, messages.py, connections.py, settings.py    values
"""
