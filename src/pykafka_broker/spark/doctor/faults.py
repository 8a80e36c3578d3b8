"""Faults and errors of a set-up of Spark as findings. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pykafka_broker.doctor.findings import Finding, problem, warning
from pykafka_broker.spark.errors import Fault, SparkError
from pykafka_broker.spark.installation import HOW_TO_INSTALL


def of_faults(check: str, subject: str, faults: Sequence[Fault]) -> list[Finding]:
    """Faults as findings of a check."""
    return [
        (warning if fault.is_warning else problem)(check, subject, fault.message, fault.remedy)
        for fault in faults
    ]


def of_error(check: str, subject: str, error: SparkError) -> Finding:
    """An error as a finding; its first line is the sentence, the others the remedy."""
    message, _, remedy = str(error).partition("\n")
    return problem(check, subject, message, remedy or HOW_TO_INSTALL)
