"""A follower's own entry among the voters: it asks for corrections, and may join the voters by itself.

The follower sends UpdateRaftVoter if the endpoints or versions of the entry are not those of this node. With
kraft.version 0 it sends UpdateRaftVoter once to every leader: the upgrade to 1 needs all entries. With
`controller.quorum.auto.join.enable` a controller that does not vote asks to join (KIP-1186). It first asks to
remove an old entry of this node with another directory.
"""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core.common import heard_from
from pykafka_broker.raft.core.messages import (
    Acknowledged,
    AddVoter,
    Destination,
    RemoveVoter,
    Request,
    UpdateVoter,
)
from pykafka_broker.raft.core.roles import Follower
from pykafka_broker.raft.core.turn import Turn


def keep_entry_true(turn: Turn, role: Follower) -> bool:
    """Ask the leader to change this node's entry, if it is time and needed; return whether it was asked."""
    if not turn.has_reached(role.update_deadline_ms) or not turn.connections.is_ready(role.leader_id):
        return False
    address = role.endpoints.get(turn.settings.listener)
    request = _needed_change(turn, role)
    sent = request is not None and address is not None
    if request is not None and address is not None:
        turn.ask(Destination(role.leader_id, address), request)
    deadline_ms = turn.now_ms + turn.settings.update_voter_interval_ms
    turn.role = role._replace(update_deadline_ms=deadline_ms)
    return sent


def _needed_change(turn: Turn, role: Follower) -> Request | None:
    voters, _, kraft_version = turn.log.membership
    entry = voters.voters.get(turn.node_id)
    if turn.is_voter:
        is_true = role.has_updated if kraft_version == 0 else entry == turn.local
        return None if is_true else UpdateVoter(role.epoch, turn.local)
    if kraft_version == 0 or not turn.settings.auto_join or not turn.settings.may_vote:
        return None
    if entry is not None:
        return RemoveVoter(entry.key)
    return AddVoter(
        turn.local.key, turn.local.endpoints, turn.settings.request_timeout_ms, ack_when_committed=False
    )


def on_update_answer(turn: Turn, answer: Acknowledged) -> bool:
    """The leader has answered an UpdateRaftVoter; after a refusal the timer tries again."""
    handled = heard_from(turn, answer.error, answer.current)
    known = (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION)
    if handled is None and answer.error in known and isinstance(turn.role, Follower):
        deadline_ms = turn.now_ms + turn.settings.fetch_timeout_ms
        turn.role = turn.role._replace(
            has_updated=True, fetch_deadline_ms=deadline_ms, election_deadline_ms=None
        )
    return True
