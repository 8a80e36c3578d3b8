"""The controllers of a cluster, reached through their own listeners (KIP-919), over the blocking client.

They serve no Metadata: DescribeCluster lists them and the active one, which gets the requests without a node
id. No broker needs to run. Apache Kafka's controllers serve this from 3.7 on. One of pykafka_broker that has
found no leader since its start lists the voters besides its error (`apis/describe_cluster.py`).
"""

from __future__ import annotations

from time import monotonic
from typing import Any

from pykafka_broker.client.blocking import BlockingConnection, Client
from pykafka_broker.client.core.addresses import Address
from pykafka_broker.client.core.connection import check
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

#: The endpoint type of controllers.
CONTROLLERS = 2
#: How long controllers may take to elect one of them; by then the silent ones are known.
ELECTION_WITHIN_S = 5.0


class Controllers(Client):
    """A quorum, reached through any of its controllers."""

    #: The address of the controller that answered DescribeCluster last; "" before one has.
    asked = ""
    #: Whether that controller has waited since its start for one that leads.
    waits = False

    def send(self, request: object, node_id: int | None = None, version: int | None = None) -> Any:
        """Send a request to one controller, or to the active one, and return the response.

        Raises:
            KafkaError: NOT_CONTROLLER, none became active in time, or the asked controller has waited for one
                since its start; BROKER_NOT_AVAILABLE, unknown id.
        """
        return super().send(request, self._active() if node_id is None else node_id, version)

    def cluster_id(self) -> str:
        return self._described().cluster_id

    def _active(self) -> int:
        give_up_s = monotonic() + ELECTION_WITHIN_S
        for _ in self.attempts():
            answer = self._described()
            if answer.controller_id in self.brokers.addresses:
                return int(answer.controller_id)
            if self.waits or monotonic() > give_up_s:
                break
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "No controller leads the quorum.")

    def _described(self) -> DescribeClusterResponse:
        """The controllers, as one of them describes them."""
        request = DescribeClusterRequest(
            include_cluster_authorized_operations=False, endpoint_type=CONTROLLERS
        )
        told_by = self.connection()
        answer: DescribeClusterResponse = told_by.send(request)
        if not answer.brokers:
            check(answer.error_code, answer.error_message)
        self.asked, self.waits = told_by.peer, bool(answer.error_code)
        self.brokers.addresses = {one.broker_id: Address(one.host, one.port) for one in answer.brokers}
        return answer

    def _to(self, node_id: int) -> BlockingConnection:
        if node_id not in self.brokers.addresses:
            self._described()
        if node_id not in self.brokers.addresses:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"Controller {node_id} is not available.")
        return self._open(self.brokers.addresses[node_id])
