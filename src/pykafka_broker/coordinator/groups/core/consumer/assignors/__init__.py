"""Server-side assignors decide which member is to own which partition. `ASSIGNORS` are those of Apache Kafka
4.3, which gives the same answers for the same input; neither of them looks at racks.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pykafka_broker.coordinator.groups.core.consumer.assignors.range import assign_ranges
from pykafka_broker.coordinator.groups.core.consumer.assignors.spec import Assignor
from pykafka_broker.coordinator.groups.core.consumer.assignors.uniform import assign_uniformly

ASSIGNORS: Mapping[str, Assignor] = MappingProxyType({"uniform": assign_uniformly, "range": assign_ranges})
