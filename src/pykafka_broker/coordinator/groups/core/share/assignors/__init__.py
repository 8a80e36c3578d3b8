"""The assignors of share groups: they share out partitions among members, each partition to as few as it
needs.

`simple.py` serves members with the same subscription, `simple_mixed.py` all others; `spec.py` has their
input, `tables.py` the iteration order of Java's hash maps, by which they decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pykafka_broker.coordinator.groups.core.share.assignors.simple import assign_alike
from pykafka_broker.coordinator.groups.core.share.assignors.simple_mixed import assign_mixed
from pykafka_broker.coordinator.groups.core.share.assignors.spec import Assigned, GroupSpec


def assign_simply(spec: GroupSpec) -> Mapping[str, Assigned]:
    """Apache Kafka's SimpleAssignor: the partitions of each member; a member that is left out has none."""
    if not spec.members:
        return {}
    return assign_alike(spec) if spec.is_homogeneous else assign_mixed(spec)


#: By their names in `group.share.assignors`.
ASSIGNORS: dict[str, Callable[[GroupSpec], Mapping[str, Assigned]]] = {"simple": assign_simply}
