"""A priority queue that orders ties as `java.util.PriorityQueue` does.

It is a binary heap; `heapq` sifts differently and so orders ties differently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class JavaQueue(Generic[Item]):
    """A priority queue. The key of an item must not change while it is in the queue."""

    def __init__(self, key: Callable[[Item], float], items: Iterable[Item] = ()) -> None:
        self._key = key
        self._heap: list[tuple[float, Item]] = []
        for item in items:
            self.add(item)

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, item: Item) -> None:
        """Put an item in."""
        heap, key = self._heap, self._key(item)
        place = len(heap)
        heap.append((key, item))
        while place > 0:
            parent = (place - 1) >> 1
            if key >= heap[parent][0]:
                break
            heap[place] = heap[parent]
            place = parent
        heap[place] = (key, item)

    def poll(self) -> Item | None:
        """Take the least item out; None if there is none."""
        heap = self._heap
        if not heap:
            return None
        least = heap[0][1]
        last = heap.pop()
        size = len(heap)
        if not size:
            return least
        place, half = 0, size >> 1
        while place < half:
            child = 2 * place + 1
            if child + 1 < size and heap[child][0] > heap[child + 1][0]:
                child += 1
            if last[0] <= heap[child][0]:
                break
            heap[place] = heap[child]
            place = child
        heap[place] = last
        return least
