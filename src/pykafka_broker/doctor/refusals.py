"""A cluster that stops answering while it is asked."""

from __future__ import annotations

from collections.abc import Iterator

from pykafka_broker.doctor.findings import Finding, problem
from pykafka_broker.protocol.errors import KafkaError, ProtocolError

Refusal = (OSError, KafkaError, ProtocolError)


def guarded(check: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """The findings of a check; if the cluster stops answering, that is the last one."""
    try:
        yield from findings
    except Refusal as error:
        yield problem(
            check,
            "",
            f"The cluster does not answer about its {check}: {reason(error)}.",
            "Look at the logs of the brokers, and ask again when they have started and elected their "
            "leaders.",
        )


def reason(error: Exception) -> str:
    """The text of an error, without a full stop."""
    if isinstance(error, KafkaError):
        return (error.message or error.code.name).rstrip(".")
    return str(error).rstrip(".")
