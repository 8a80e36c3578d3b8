"""How a replica finds the leader and follows it: the sender's side of Fetch.

A replica that may vote sends its next Fetch only when all received records are on its disk, because the
offset of a Fetch acknowledges the records below it.
"""

from __future__ import annotations

from pykafka_broker.machine.illegal_state import IllegalState
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core.common import heard_from
from pykafka_broker.raft.core.elections import stand
from pykafka_broker.raft.core.log_view import Batch, EpochEnd
from pykafka_broker.raft.core.messages import Destination, Fetch, FetchAnswer
from pykafka_broker.raft.core.roles import Download, Follower, Unattached
from pykafka_broker.raft.core.snapshot_fetching import ask_for_part
from pykafka_broker.raft.core.turn import Turn
from pykafka_broker.raft.core.voter_updates import keep_entry_true


def poll_unattached(turn: Turn, role: Unattached) -> None:
    """Ask the bootstrap servers for the leader; start an election if none is found in time."""
    if turn.stopping:
        ask_voters(turn)
    elif turn.may_stand and turn.has_reached(role.election_deadline_ms):
        stand(turn)
    elif turn.may_stand and role.election_deadline_ms is None:
        # The log has just made this replica a voter.
        turn.role = role._replace(election_deadline_ms=turn.next_election_ms())
        _ask_around(turn)
    else:
        _ask_around(turn)


def poll_follower(turn: Turn, role: Follower) -> None:
    """Fetch from the leader; after `fetch_timeout_ms` without an answer start an election, or ask around."""
    if turn.has_reached(role.fetch_deadline_ms) and role.election_deadline_ms is None:
        # The leader last answered the others at about the same time, so they time out now as well.
        role = turn.role = role._replace(election_deadline_ms=turn.election_in_order_ms())
    if turn.has_reached(role.election_deadline_ms) and not turn.stopping:
        if turn.may_stand:
            stand(turn)
        else:
            _ask_around(turn)
        return
    if turn.stopping or keep_entry_true(turn, role):
        return
    address = role.endpoints.get(turn.settings.listener)
    leader = None if address is None else Destination(role.leader_id, address)
    if leader is None or (
        not turn.connections.is_ready(role.leader_id) and not turn.connections.is_waiting()
    ):
        _ask_around(turn)
    elif turn.connections.is_waiting():
        return
    elif role.download is not None:
        if not role.download.is_complete:
            ask_for_part(turn, leader, role.download)
    elif is_safe_to_fetch(turn):
        turn.ask(leader, _fetch(turn))


def is_safe_to_fetch(turn: Turn) -> bool:
    """Whether all records that the next Fetch would acknowledge are on disk."""
    return not turn.settings.may_vote or turn.log.flushed_offset >= turn.log.end_offset


def _fetch(turn: Turn) -> Fetch:
    log = turn.log
    known = -1 if turn.high_watermark is None else turn.high_watermark
    return Fetch(
        turn.epoch, turn.local.key, log.end_offset, log.last_epoch, turn.settings.fetch_max_wait_ms, known
    )


def _ask_around(turn: Turn) -> None:
    """Ask a random bootstrap server for the leader; a silent one only if all were silent."""
    connections = turn.connections
    if connections.is_waiting() or not is_safe_to_fetch(turn):
        return
    known = turn.bootstrap
    servers = [server for server in known if not connections.is_silent(server.address, turn.now_ms)] or known
    if servers and all(connections.is_ready(server.node_id) for server in servers):
        turn.ask(servers[int(turn.chance * len(servers))], _fetch(turn))


def ask_voters(turn: Turn) -> None:
    """Ask the other voters for the leader while stopping; the attempts also show which voters are gone."""
    if is_safe_to_fetch(turn):
        for voter in turn.voters.others(turn.node_id):
            turn.ask_voter(voter.key.node_id, _fetch(turn))


def on_fetch_answer(turn: Turn, answer: FetchAnswer) -> bool:
    """The leader or a bootstrap server has answered; return whether to ask it again at once."""
    handled = heard_from(turn, answer.error, answer.current)
    if handled is not None:
        return handled
    role = turn.role
    if answer.error is not ErrorCode.NONE or not isinstance(role, Follower):
        return False
    deadline_ms = turn.now_ms + turn.settings.fetch_timeout_ms
    # Give up the download: its snapshot is older than the records fetched since.
    role = turn.role = role._replace(
        has_fetched=True, election_deadline_ms=None, fetch_deadline_ms=deadline_ms, download=None
    )
    if answer.diverging is not None:
        truncate(turn, answer.diverging)
    elif answer.snapshot_id is not None:
        if answer.snapshot_id.end_offset < 0 or answer.snapshot_id.epoch < 0:
            return False
        turn.role = role._replace(download=Download(answer.snapshot_id))
    else:
        replicate(turn, answer.batches)
        if answer.high_watermark is not None:
            turn.commit(min(answer.high_watermark, turn.log.end_offset))
    return True


def on_refused(turn: Turn, node_id: int) -> None:
    """A replica's address refused the connection. If it is the leader, its process has ended, and an election
    starts early; in Apache Kafka it waits for `controller.quorum.fetch.timeout.ms`.

    This happens once after each answer of the leader. If other voters still reach the leader, they refuse
    pre-votes, and this voter waits for the time-out as well.
    """
    role = turn.role
    if not isinstance(role, Follower) or node_id != role.leader_id:
        return
    if role.has_fetched and role.election_deadline_ms is None:
        turn.role = role._replace(election_deadline_ms=turn.election_in_order_ms())


def truncate(turn: Turn, diverging: EpochEnd) -> None:
    """Truncate the log where it diverges from the leader's. The leader has all committed records."""
    own = turn.log.end_of_epoch(diverging.epoch)
    end_offset = own.end_offset
    if own.epoch == diverging.epoch:
        end_offset = min(end_offset, diverging.end_offset)
    if end_offset < (turn.high_watermark or 0):
        raise IllegalState(
            f"the leader of epoch {turn.epoch} has another log from {end_offset} on, "
            f"and {turn.high_watermark} records are committed"
        )
    if end_offset < turn.log.end_offset:
        turn.truncate = end_offset
        turn.log = turn.log.truncated(end_offset)


def replicate(turn: Turn, batches: tuple[Batch, ...]) -> None:
    """Append, unchanged, the batches that continue the log."""
    fitting = []
    end_offset, epoch = turn.log.end_offset, turn.log.last_epoch
    for batch in batches:
        if batch.base_offset != end_offset or not epoch <= batch.epoch <= turn.epoch:
            break
        fitting.append(batch)
        end_offset, epoch = batch.next_offset, batch.epoch
    turn.replicate = tuple(fitting)
    turn.log = turn.log.appended(fitting)
