"""Task assignors decide which member runs which task. Apache Kafka 4.3 has one, `sticky`, and gives the same
answers for the same input: it looks neither at racks and client tags nor at lags, and assigns no warm-up
tasks.

`spec.py` has the input, `sticky.py` the assignor, `processes.py` the load of processes meanwhile, and
`java_queue.py` the order of ties in Java's priority queue.
"""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.streams.assignor.spec import TaskAssignor
from pykafka_broker.coordinator.groups.core.streams.assignor.sticky import assign_sticky

#: The assignor of every group.
ASSIGNOR: TaskAssignor = assign_sticky
