"""Where we differ from Apache Kafka on purpose, each with the reason that `docs/conformance.md` prints.

An entry names conversations ("api/name") and the paths of differences in them, both as glob patterns. One
that no difference matches any more is stale and fails the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from interop.conformance.compare import Difference
from interop.conformance.conversation import Case


@dataclass(frozen=True)
class Accepted:
    name: str
    conversations: str
    paths: str
    #: Why, in words for users.
    reason: str
    #: What ours says there, as a glob pattern as well.
    ours: str = "*"

    def concerns(self, case: Case) -> bool:
        return fnmatchcase(case.conversation.id, self.conversations)

    def matches(self, case: Case, difference: Difference) -> bool:
        return (
            self.concerns(case)
            and fnmatchcase(difference.path, self.paths)
            and fnmatchcase(difference.ours, self.ours)
        )


ACCEPTED: tuple[Accepted, ...] = (
    Accepted(
        "an API is not served yet",
        "api_versions/*",
        "* ApiVersions v*.api_keys.*",
        "Only what works is listed: transactions, ACLs, SASL, quotas, the newer kinds of groups and moving "
        "replicas are to come.",
        ours="(missing)",
    ),
    Accepted(
        "a feature is not supported yet",
        "api_versions/*",
        "* ApiVersions v*.*_features.*",
        "The level of a feature is raised when what it promises works.",
    ),
)
