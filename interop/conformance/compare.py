"""Two transcripts of one conversation, field by field.

A difference is named by the number of the answer in the conversation and the path to the field in it. Values
and words are two classes: an error message that says the same in other words is counted apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from interop.conformance.normalise import WORDS, InOrder, Tree
from interop.conformance.talk import Transcript

MISSING = "(missing)"


@dataclass(frozen=True)
class Difference:
    #: "2 Metadata v12.topics.0.error_code": the second compared answer, the field.
    path: str
    apache: str
    ours: str

    @property
    def is_of_words(self) -> bool:
        return self.path.rpartition(".")[2] in WORDS

    def __str__(self) -> str:
        return f"{self.path}: Apache {self.apache}, ours {self.ours}"


def compare(apache: Transcript, ours: Transcript) -> list[Difference]:
    found: list[Difference] = []
    for number in range(max(len(apache.answers), len(ours.answers))):
        left = apache.answers[number] if number < len(apache.answers) else None
        right = ours.answers[number] if number < len(ours.answers) else None
        title = f"{number + 1} {(left or right or ('', None))[0]}"
        if left and right and left[0] != right[0]:
            found.append(Difference(f"{number + 1}", left[0], right[0]))
        found += differences(left[1] if left else MISSING, right[1] if right else MISSING, title)
    if not found and apache.broke_off != ours.broke_off:
        found.append(Difference("the end", str(apache.broke_off), str(ours.broke_off)))
    return found


def differences(apache: Tree, ours: Tree, path: str) -> Iterator[Difference]:
    if isinstance(apache, dict) and isinstance(ours, dict):
        if isinstance(apache, InOrder):
            orders = [name for name in apache if name in ours], [name for name in ours if name in apache]
            if orders[0] != orders[1]:
                yield Difference(f"{path}.order", text(orders[0]), text(orders[1]))
        for name in [*apache, *(name for name in ours if name not in apache)]:
            yield from differences(apache.get(name, MISSING), ours.get(name, MISSING), f"{path}.{name}")
    elif isinstance(apache, list) and isinstance(ours, list):
        if len(apache) == len(ours) > 1 and apache != ours and in_any_order(apache) == in_any_order(ours):
            yield Difference(f"{path}.order", text(apache), text(ours))
            return
        for index in range(max(len(apache), len(ours))):
            left = apache[index] if index < len(apache) else MISSING
            right = ours[index] if index < len(ours) else MISSING
            yield from differences(left, right, f"{path}.{index}")
    elif type(apache) is not type(ours) or apache != ours:
        yield Difference(path, text(apache), text(ours))


def in_any_order(values: list[Any]) -> list[str]:
    return sorted(text(value) for value in values)


def text(value: Tree) -> str:
    return value if value == MISSING else json.dumps(value, ensure_ascii=False)
