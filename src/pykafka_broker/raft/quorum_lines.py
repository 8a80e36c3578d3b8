"""The log lines of a node in a quorum of several: its roles, the leader, the voters, the active controller,
and what a node waits for while it starts, or while no controller leads.

Loggers and the beginnings of the lines are those of Apache Kafka. Each change is one line. A replica that is
cut off alternates between roles of the same epoch, which is logged only now and then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from pykafka_broker.raft.core.log_view import Membership
from pykafka_broker.raft.core.messages import Destination
from pykafka_broker.raft.core.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from pykafka_broker.system.repeated_lines import RepeatedLines

client_logger = logging.getLogger("org.apache.kafka.raft.KafkaRaftClient")
role_logger = logging.getLogger("org.apache.kafka.raft.QuorumState")
voters_logger = logging.getLogger("org.apache.kafka.raft.internals.KRaftControlRecordStateMachine")
loader_logger = logging.getLogger("org.apache.kafka.image.loader.MetadataLoader")
controller_logger = logging.getLogger("org.apache.kafka.controller.QuorumController")

REMEDY = "More than half of the voters must run, and reach each other and this node."
#: True of a node without a leader, even if the quorum has a leader that the node does not reach.
MEANWHILE = (
    "Until then this node neither makes nor sees changes of topics, leaders and ISRs; brokers serve the "
    "partitions that they lead, with acks=all where the whole ISR answers."
)


class QuorumLines:
    """Writes the lines of node `node_id`."""

    def __init__(self, node_id: int, now_ms: Callable[[], int]) -> None:
        self._node_id = node_id
        self._role: Role | None = None
        self._voters: Membership | None = None
        self._lines = RepeatedLines(role_logger, now_ms)

    def has_role(self, role: Role) -> None:
        """The replica has another role, or the same in another epoch."""
        before, self._role = self._role, role
        origin = "" if before is None else f" from {_told(before)}"
        kind = f"{type(role).__name__} after {type(before).__name__}"
        text = f"[RaftManager id={self._node_id}] Completed transition to {_told(role)}{origin}"
        self._lines.log(logging.INFO, kind, str(role.epoch), text)

    def has_voters(self, membership: Membership) -> None:
        """The committed voters are these."""
        before, self._voters = self._voters, membership
        if before is not None and before.voters == membership.voters:
            return
        voters = ", ".join(
            f"{node_id}@" + ",".join(f"{host}:{port}" for host, port in voter.endpoints.values())
            for node_id, voter in sorted(membership.voters.voters.items())
        )
        where = "of controller.quorum.voters" if membership.offset < 0 else f"at offset {membership.offset}"
        voters_logger.info(
            "[RaftManager id=%s] Latest set of voters is [%s] %s", self._node_id, voters, where
        )

    def waits(self, offset: int, high_watermark: int | None) -> None:
        """The starting node has the committed records below `offset`, and waits for more."""
        loader_logger.info("%s", self._waiting(offset, high_watermark))

    def waits_for_leader(
        self,
        high_watermark: int | None,
        leaderless_ms: int,
        others: Sequence[Destination],
        silent: Sequence[Destination],
    ) -> None:
        """No leader has answered for `leaderless_ms`, and the `silent` of the `others` do not answer.

        A node that does not know the high watermark cannot start; any other one goes on.
        """
        known = ", ".join(map(_named, others))
        who = f"All others ({known}) answered when they were last asked, and none of them leads"
        if silent:
            who = f"Of the others ({known}) these do not answer: {', '.join(map(_named, silent))}"
        text = f"No controller that leads has answered for {leaderless_ms // 1_000:,} s. {who}. {REMEDY}"
        if high_watermark is None:
            loader_logger.warning("%s %s", self._waiting(0, None), text)
        else:
            client_logger.warning("[RaftManager id=%s] %s %s", self._node_id, text, MEANWHILE)

    def wait_is_over(self, leader_id: int, epoch: int) -> None:
        """The node has what it has waited for."""
        text = "[RaftManager id=%s] The wait is over: node %s leads the quorum in epoch %s."
        client_logger.info(text, self._node_id, leader_id, epoch)

    def _waiting(self, offset: int, high_watermark: int | None) -> str:
        reason = "we still don't know the high water mark yet."
        if high_watermark is not None:
            reason = f"we have loaded up to offset {offset}, but the high water mark is {high_watermark}."
        return (
            f"[MetadataLoader id={self._node_id}] initializeNewPublishers: The loader is still catching up "
            f"because {reason}"
        )

    def controller_begins(self, epoch: int, end_offset: int) -> None:
        """The controller of this node is the active one."""
        controller_logger.info(
            "[QuorumController id=%s] Becoming the active controller at epoch %s, next write offset %s.",
            self._node_id,
            epoch,
            end_offset,
        )

    def controller_ends(self, led_epoch: int, role: Role) -> None:
        """The controller of this node is no longer the active one."""
        leader_id = role.leader_id if isinstance(role, Follower) else None
        controller_logger.info(
            "[QuorumController id=%s] Renouncing the leadership. We were the leader in epoch %s, but in "
            "epoch %s, the leader is %s.",
            self._node_id,
            led_epoch,
            role.epoch,
            "(none)" if leader_id is None else leader_id,
        )


def _named(one: Destination) -> str:
    """A voter as controller.quorum.voters names it; of a bootstrap server only the address is known."""
    host, port = one.address
    return f"{one.node_id}@{host}:{port}" if one.node_id >= 0 else f"{host}:{port}"


def _told(role: Role) -> str:
    match role:
        case Leader():
            return f"Leader(epoch={role.epoch}, epochStartOffset={role.start_offset})"
        case Follower():
            return f"FollowerState(epoch={role.epoch}, leader={role.leader_id})"
        case Candidate():
            return f"CandidateState(epoch={role.epoch})"
        case Resigned():
            return f"ResignedState(epoch={role.epoch})"
        case Prospective() | Unattached():
            leader = "none" if role.leader_id is None else role.leader_id
            voted = "none" if role.voted is None else role.voted.node_id
            return f"{type(role).__name__}State(epoch={role.epoch}, leader={leader}, voted={voted})"
