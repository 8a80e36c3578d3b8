"""The `uniform` assignor: numbers of partitions differ by one at most, and a member keeps its partitions
as far as that allows.

This file deals with groups whose members all subscribe to the same topics; `uniform_mixed.py` with others.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.coordinator.groups.core.consumer.assignors.spec import Assignment, GroupSpec
from pykafka_broker.coordinator.groups.core.consumer.assignors.uniform_mixed import assign_mixed
from pykafka_broker.protocol.java_hash import int_hash, string_hash, uuid_hash, walked


def assign_uniformly(spec: GroupSpec) -> Mapping[str, Assignment]:
    """Assign all partitions of the subscribed topics."""
    if not spec.members:
        return {}
    return _Uniform(spec).build() if spec.is_homogeneous else assign_mixed(spec)


class _Uniform:
    """One run: take surplus partitions from members, then give free ones to members that have too few."""

    def __init__(self, spec: GroupSpec) -> None:
        self.spec = spec
        self.member_ids = walked(spec.members, string_hash)
        self.topic_ids = spec.members[self.member_ids[0]].topic_ids
        self.unassigned: list[tuple[bytes, int]] = []
        #: The number of partitions that each member with room can take.
        self.unfilled: list[tuple[str, int]] = []
        self.result: dict[str, Assignment] = {}

    def build(self) -> Mapping[str, Assignment]:
        if not self.topic_ids:
            return {}
        total = 0
        for topic_id in walked(self.topic_ids, uuid_hash, sized=True):
            count = self.spec.partition_counts[topic_id]
            total += count
            self.unassigned += [
                (topic_id, partition)
                for partition in range(count)
                if (topic_id, partition) not in self.spec.assigned
            ]
        self._revoke(*divmod(total, len(self.member_ids)))
        self._assign()
        return self.result

    def _revoke(self, least: int, extras: int) -> None:
        """Every member may keep `least` partitions, and `extras` of them one more.

        A member with room left gives up its extra, unless each remaining member must take one.
        """
        for place, member_id in enumerate(self.member_ids):
            has_extra = extras > 0
            kept, quota = self._kept(member_id, least + has_extra)
            if quota > 0 and has_extra and len(self.member_ids) - place > extras:
                quota -= 1
                has_extra = False
            if quota > 0:
                self.unfilled.append((member_id, quota))
            extras -= has_extra
            self.result[member_id] = kept

    def _kept(self, member_id: str, quota: int) -> tuple[Assignment, int]:
        """The partitions that a member keeps, and how much of its quota they leave."""
        kept: dict[bytes, frozenset[int]] = {}
        assignment = self.spec.members[member_id].assignment
        for topic_id in walked(assignment, uuid_hash):
            if topic_id not in self.topic_ids:
                continue
            partitions = assignment[topic_id]
            if len(partitions) > quota:
                in_order = walked(sorted(partitions), int_hash, sized=True)
                self.unassigned += [(topic_id, partition) for partition in in_order[quota:]]
                partitions = frozenset(in_order[:quota])
            quota -= len(partitions)
            if partitions:
                kept[topic_id] = partitions
        return kept, quota

    def _assign(self) -> None:
        free = iter(self.unassigned)
        for member_id, quota in self.unfilled:
            given: dict[bytes, set[int]] = {}
            for _, (topic_id, partition) in zip(range(quota), free, strict=False):
                given.setdefault(topic_id, set()).add(partition)
            if given:
                grown = dict(self.result[member_id])
                for topic_id, partitions in given.items():
                    grown[topic_id] = grown.get(topic_id, frozenset()) | partitions
                self.result[member_id] = grown
        assert next(free, None) is None, "partitions were left unassigned"
