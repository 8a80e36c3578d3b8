"""The addresses that the executors of a session reach.

The driver plans a read of Kafka, executors carry it out: from their own machines, and with the addresses that
the brokers advertise. A job connects from as many tasks as the session runs at once. The code in a task uses
nothing but Python's own library, because an executor need not have this package.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pykafka_broker.client.core.addresses import Address
from pykafka_broker.client.core.frames import request_frame
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The tasks to start for each that can run at once, so that no executor is left out.
TASKS_PER_SLOT = 2
MOST_TASKS = 2_000
#: A version that every broker answers.
_API_VERSIONS_VERSION = 0


class Reached(NamedTuple):
    """The result of connecting from an executor's host to an address."""

    host: str
    address: Address
    #: The reason why the host does not reach the address; "" if it does.
    reason: str


def reach(
    session: SparkSession, addresses: Sequence[Address], timeout_s: float, *, speaks_plain: bool = True
) -> list[Reached]:
    """Connect to each address from the executors; return the result of each host once.

    Args:
        session: Classic or of Spark Connect.
        addresses: Those that brokers advertise.
        timeout_s: How long an address may take to answer.
        speaks_plain: Whether the listeners answer a request without TLS and SASL; else a connection will do.
    """
    from pyspark.sql.functions import udf

    request = request_frame(ApiVersionsRequest(), _API_VERSIONS_VERSION) if speaks_plain else b""
    tasks = _tasks(session)
    look = udf(
        _look_from_executor([(address.host, address.port) for address in addresses], request, timeout_s)
    )
    rows = session.range(0, tasks, 1, tasks).select(look("id").alias("found")).distinct().collect()
    return sorted(
        Reached(host, Address(*address), reason)
        for host, results in (json.loads(row.found) for row in rows)
        for address, reason in results
    )


def _tasks(session: SparkSession) -> int:
    try:
        slots = int(session.sparkContext.defaultParallelism)
    except Exception:  # Spark Connect has no context
        slots = int(session.conf.get("spark.default.parallelism", "8") or "8")
    return min(max(slots, 1) * TASKS_PER_SLOT, MOST_TASKS)


def _look_from_executor(
    addresses: list[tuple[str, int]], request: bytes, timeout_s: float
) -> Callable[[int], str]:
    """A function within a function travels whole; one of this module would be imported there."""

    def look(task: int) -> str:
        import json
        import socket

        found = []
        for address in addresses:
            reason = ""
            try:
                with socket.create_connection(address, timeout_s) as connection:
                    connection.settimeout(timeout_s)
                    if request:
                        connection.sendall(request)
                        if len(connection.recv(1)) == 0:
                            reason = "the connection is closed without an answer"
            except TimeoutError:
                reason = "no answer in time"
            except OSError as error:
                reason = error.strerror or str(error)
            found.append([list(address), reason])
        return json.dumps([socket.gethostname(), found])

    return look
