"""Changes of the voters, on the leader: AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter, kraft.version 1.

Each change concerns one voter (KIP-853), so every majority of the old voters shares a voter with every
majority of the new ones. The new voters count as soon as their record is appended. The next change waits
until the new voters have committed that record in this leader's epoch.
"""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.protocol.messages.records import control as m
from pykafka_broker.raft.core.common import leader_request_error
from pykafka_broker.raft.core.messages import (
    AddVoter,
    AskVersions,
    ChangeAnswer,
    Destination,
    RemoveVoter,
    UpdateVoter,
    Versions,
)
from pykafka_broker.raft.core.progress import (
    hear_voter,
    is_caught_up,
    key_among_voters,
    move_high_watermark,
)
from pykafka_broker.raft.core.quorum import UNKNOWN_DIRECTORY, Endpoints, ReplicaKey, Voter, VoterSet
from pykafka_broker.raft.core.roles import Leader, VoterChange
from pykafka_broker.raft.core.turn import Turn


def on_add_voter(turn: Turn, token: int, request: AddVoter) -> None:
    """Make a replica a voter, once it has said which levels of kraft.version it supports."""
    role = turn.role
    refusal = _refusal(turn, "Add", request.key) or _address_refusal(turn, request)
    refusal = refusal or change_refusal(turn, "adding") or _duplicate_refusal(turn, request.key)
    if refusal is not None or not isinstance(role, Leader):
        turn.answer(token, refusal or _not_leader(turn))
        return
    to = Destination(request.key.node_id, request.endpoints[turn.settings.listener])
    if not turn.ask(to, AskVersions()):
        message = f"New voter {_text(request.key)} is not ready to receive requests"
        turn.answer(token, ChangeAnswer(ErrorCode.REQUEST_TIMED_OUT, message))
        return
    deadline_ms = turn.now_ms + turn.settings.request_timeout_ms
    turn.role = role._replace(change=VoterChange(token, deadline_ms, adding=request))


def _refusal(turn: Turn, what: str, key: ReplicaKey) -> ChangeAnswer | None:
    """The refusal of a request by the checks that ignore the state of the quorum, or None."""
    error = leader_request_error(turn, turn.epoch)
    if error is not ErrorCode.NONE:
        return ChangeAnswer(error, "", turn.current)
    if key.node_id < 0 or key.directory_id == UNKNOWN_DIRECTORY:
        return ChangeAnswer(ErrorCode.INVALID_REQUEST, f"{what} voter request didn't include a valid voter")
    return None


def _address_refusal(turn: Turn, request: AddVoter) -> ChangeAnswer | None:
    listener = turn.settings.listener
    if listener in request.endpoints:
        return None
    return ChangeAnswer(
        ErrorCode.INVALID_REQUEST,
        f"Add voter request didn't include the endpoint ({_endpoints_text(request.endpoints)}) for the "
        f"default listener ListenerName({listener})",
    )


def change_refusal(turn: Turn, doing: str) -> ChangeAnswer | None:
    """The refusal because of another change, uncommitted voters or kraft.version 0, or None."""
    role = turn.role
    if not isinstance(role, Leader):
        return _not_leader(turn)
    if (refusal := _busy(role)) is not None:
        return refusal
    if turn.log.kraft_version == 0:
        message = f"Cluster doesn't support {doing} voter because the kraft.version feature is 0"
        return ChangeAnswer(ErrorCode.UNSUPPORTED_VERSION, message)
    return _uncommitted(turn, role)


def _not_leader(turn: Turn) -> ChangeAnswer:
    return ChangeAnswer(ErrorCode.NOT_LEADER_OR_FOLLOWER, "", turn.current)


def _busy(role: Leader) -> ChangeAnswer | None:
    """The refusal of any change now, at every level of kraft.version, or None."""
    if role.change is not None:
        return _later("for leader to handle previous voter change request")
    if role.high_watermark is None:
        return _later("for leader to establish HWM and fence previous voter changes")
    return None


def _uncommitted(turn: Turn, role: Leader) -> ChangeAnswer | None:
    """The refusal because the newest voters in the log are not committed, or None."""
    offset, high_watermark = turn.log.membership.offset, role.high_watermark or 0
    if offset < high_watermark:
        return None
    return _later(
        f"for voters to commit the latest voter change at Optional[{offset}] with HWM {high_watermark}"
    )


def _later(why: str) -> ChangeAnswer:
    return ChangeAnswer(ErrorCode.REQUEST_TIMED_OUT, f"Request timed out waiting {why}")


def _duplicate_refusal(turn: Turn, key: ReplicaKey) -> ChangeAnswer | None:
    if key.node_id not in turn.voters.voters:
        return None
    return ChangeAnswer(
        ErrorCode.DUPLICATE_VOTER,
        f"The voter id for {_text(key)} is already part of the set of voters {_texts(turn.voters)}.",
    )


def on_versions(turn: Turn, node_id: int, answer: Versions) -> bool:
    """The new voter has sent its versions: append the new voters, if it is suitable."""
    role = turn.role
    change = role.change if isinstance(role, Leader) else None
    if not isinstance(role, Leader) or change is None or change.adding is None:
        return True
    request = change.adding
    if request.key.node_id != node_id:
        return True
    refusal = _unfit(turn, request.key, answer)
    if refusal is not None:
        turn.role = role._replace(change=None)
        turn.answer(change.token, refusal)
        return answer.error is ErrorCode.NONE
    voter = Voter(request.key, request.endpoints, answer.kraft_versions or (0, 0))
    offset = append_voters(turn, turn.voters.with_voter(voter))
    _await_commit(turn, change, offset, at_once=not request.ack_when_committed)
    return True


def _unfit(turn: Turn, key: ReplicaKey, answer: Versions) -> ChangeAnswer | None:
    """Why a replica cannot become a voter, or None."""
    if answer.error is not ErrorCode.NONE:
        message = f"Aborted add voter operation for since API_VERSIONS returned an error {answer.error.name}"
        return ChangeAnswer(ErrorCode.REQUEST_TIMED_OUT, message)
    least, greatest = answer.kraft_versions or (0, 0)
    level = turn.log.kraft_version
    if not least <= level <= greatest:
        return ChangeAnswer(
            ErrorCode.INVALID_REQUEST,
            f"Aborted add voter operation for {_text(key)} since the kraft.version range "
            f"(min: {least}, max: {greatest}) doesn't support the finalized version {level}",
        )
    if not is_caught_up(turn, key):
        message = f"Aborted add voter operation for {_text(key)} since it is lagging behind"
        return ChangeAnswer(ErrorCode.REQUEST_TIMED_OUT, message)
    return None


def on_remove_voter(turn: Turn, token: int, request: RemoveVoter) -> None:
    """Remove a voter; a leader that removes itself leads until its removal is committed."""
    refusal = _refusal(turn, "Remove", request.key) or change_refusal(turn, "removing")
    if refusal is None and not _can_remove(turn.voters, request.key):
        message = f"Cannot remove voter {_text(request.key)} from the set of voters {_texts(turn.voters)}"
        refusal = ChangeAnswer(ErrorCode.VOTER_NOT_FOUND, message)
    if refusal is not None:
        turn.answer(token, refusal)
        return
    offset = append_voters(turn, turn.voters.without_voter(request.key.node_id))
    deadline_ms = turn.now_ms + turn.settings.request_timeout_ms
    _await_commit(turn, VoterChange(token, deadline_ms), offset)


def _can_remove(voters: VoterSet, key: ReplicaKey) -> bool:
    """Whether `key` is a voter, and not the last one."""
    voter = voters.voters.get(key.node_id)
    return voter is not None and voter.key == key and len(voters.voters) > 1


def on_update_voter(turn: Turn, token: int, request: UpdateVoter) -> None:
    """A voter has new endpoints or versions; answered without waiting for the commit."""
    error = leader_request_error(turn, request.epoch)
    role = turn.role
    voter = request.voter
    if error is ErrorCode.NONE and not _is_valid(turn, voter):
        error = ErrorCode.INVALID_REQUEST
    if error is ErrorCode.NONE and isinstance(role, Leader):
        error = _update(turn, role, voter)
    turn.acknowledge(token, error)


def _is_valid(turn: Turn, voter: Voter) -> bool:
    least, greatest = voter.kraft_versions
    return (
        voter.key.node_id >= 0
        and voter.key.directory_id != UNKNOWN_DIRECTORY
        and turn.settings.listener in voter.endpoints
        and 0 <= least <= greatest
    )


def _update(turn: Turn, role: Leader, voter: Voter) -> ErrorCode:
    """Append a voter's new entry; with kraft.version 0 only remember it, for the upgrade."""
    is_dynamic = turn.log.kraft_version > 0
    if _busy(role) or (is_dynamic and _uncommitted(turn, role)):
        return ErrorCode.REQUEST_TIMED_OUT
    if not voter.supports(turn.log.kraft_version):
        return ErrorCode.INVALID_REQUEST
    known = turn.voters.voters.get(voter.key.node_id)
    if known is None or (is_dynamic and known.key != voter.key):
        return ErrorCode.VOTER_NOT_FOUND
    if is_dynamic:
        append_voters(turn, turn.voters.with_voter(voter))
    else:
        turn.role = role._replace(reported={**role.reported, voter.key.node_id: voter})
    hear_voter(turn, voter.key)
    return ErrorCode.NONE


def upgrade_kraft_version(turn: Turn, token: int, *, validate_only: bool) -> None:
    """Write the voters of the configuration into the log, where they can be changed (kraft.version 1)."""
    role = turn.role
    error = leader_request_error(turn, turn.epoch)
    if error is not ErrorCode.NONE or not isinstance(role, Leader):
        turn.answer(token, ChangeAnswer(error, "", turn.current))
        return
    refusal = _busy(role) or _upgrade_refusal(turn, role)
    if refusal is not None or validate_only or turn.log.kraft_version > 0:
        turn.answer(token, refusal or ChangeAnswer(ErrorCode.NONE))
        return
    known = {**role.reported, turn.node_id: turn.local}
    voters = VoterSet({node_id: known[node_id] for node_id in turn.voters.voters})
    version = m.KRaftVersionRecord(version=0, kraft_version=1)
    end_offset = turn.append_control(version, voters.to_record())
    # The progress of voters was kept under keys without directories.
    progress = {key_among_voters(turn, key): reached for key, reached in role.progress.items()}
    turn.role = role._replace(progress=progress)
    move_high_watermark(turn)
    deadline_ms = turn.now_ms + turn.settings.request_timeout_ms
    _await_commit(turn, VoterChange(token, deadline_ms), end_offset - 1)


def _upgrade_refusal(turn: Turn, role: Leader) -> ChangeAnswer | None:
    """The refusal unless every voter has reported that it supports level 1."""
    known = {**role.reported, turn.node_id: turn.local}
    if turn.log.kraft_version > 0 or all(
        node_id in known and known[node_id].supports(1) for node_id in turn.voters.voters
    ):
        return None
    message = "Invalid upgrade of kraft.version to KRAFT_VERSION_1 because not all of the voters support it"
    return ChangeAnswer(ErrorCode.INVALID_UPDATE_VERSION, message)


def append_voters(turn: Turn, voters: VoterSet) -> int:
    """Append the new voters, which count at once; return the offset of their record."""
    end_offset = turn.append_control(voters.to_record())
    move_high_watermark(turn)
    return end_offset - 1


def _await_commit(turn: Turn, change: VoterChange, offset: int, *, at_once: bool = False) -> None:
    role = turn.role
    if not isinstance(role, Leader):
        return
    if at_once:
        turn.answer(change.token, ChangeAnswer(ErrorCode.NONE))
        turn.role = role._replace(change=None)
    else:
        turn.role = role._replace(change=VoterChange(change.token, change.deadline_ms, offset))


def poll_change(turn: Turn, role: Leader) -> Leader:
    """Answer the change under way if it is committed or has timed out; return the new role."""
    change = role.change
    if change is None:
        return role
    is_committed = 0 <= change.offset < (role.high_watermark or 0)
    if is_committed or turn.has_reached(change.deadline_ms):
        turn.role = role = role._replace(change=None)
        timed_out = ChangeAnswer(ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT.message)
        turn.answer(change.token, ChangeAnswer(ErrorCode.NONE) if is_committed else timed_out)
    return role


def _text(key: ReplicaKey) -> str:
    """A replica key in Kafka's words."""
    directory_id = "<undefined>"
    if key.directory_id != UNKNOWN_DIRECTORY:
        directory_id = uuid_text(key.directory_id)
    return f"ReplicaKey(id={key.node_id}, directoryId={directory_id})"


def _texts(voters: VoterSet) -> str:
    return "[" + ", ".join(_text(voter.key) for voter in voters.voters.values()) + "]"


def _endpoints_text(endpoints: Endpoints) -> str:
    """Endpoints in Kafka's words."""
    texts = [f"ListenerName({name})={host}/<unresolved>:{port}" for name, (host, port) in endpoints.items()]
    return f"Endpoints(endpoints={{{', '.join(texts)}}})"
