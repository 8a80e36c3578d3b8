"""Named tuples are what `typing.NamedTuple` makes of the same class."""

from __future__ import annotations

import pickle
import typing
from typing import Generic, TypeVar

import pytest

from pykafka_broker.system.named_tuple import NamedTuple

Item = TypeVar("Item")


class Place(NamedTuple):
    """Where a record is."""

    topic: str
    partition: int = 0
    #: Text under `from __future__ import annotations`: nothing of this name needs to exist.
    log: NotImported | None = None  # type: ignore[name-defined]  # noqa: F821

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @classmethod
    def of(cls, name: str) -> Place:
        topic, _, partition = name.rpartition("-")
        return cls(topic, int(partition))

    def __str__(self) -> str:
        return self.name


class Pair(NamedTuple, Generic[Item]):
    first: Item
    second: Item


class Same(typing.NamedTuple):
    topic: str
    partition: int = 0


def test_fields_have_names_places_and_defaults() -> None:
    place = Place("orders")
    assert Place("orders") == ("orders", 0, None)
    assert (place.topic, place[1]) == ("orders", 0)
    assert place._replace(partition=3) == Place("orders", 3)
    assert Place._fields == ("topic", "partition", "log")
    assert repr(place) == "Place(topic='orders', partition=0, log=None)"
    with pytest.raises(ValueError, match="unexpected field names"):
        place._replace(offset=3)  # type: ignore[call-arg]


def test_the_class_keeps_its_methods_text_and_place() -> None:
    assert Place.of("orders-7").name == str(Place("orders", 7)) == "orders-7"
    assert Place.__doc__ == "Where a record is."
    assert (Place.__module__, Place.__qualname__) == (__name__, "Place")
    assert pickle.loads(pickle.dumps(Place("orders"))) == Place("orders")


def test_a_class_may_be_generic() -> None:
    assert Pair[int](1, 2) == (1, 2)
    assert isinstance(Pair(1, 2), tuple)
    assert issubclass(Pair, Generic)


def test_annotations_stay_as_they_are_written() -> None:
    assert Place.__annotations__["log"] == "NotImported | None"


@pytest.mark.parametrize("arguments", [(), ("orders", 1, None, 2)])
def test_a_wrong_number_of_values_is_refused(arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        Place(*arguments)  # type: ignore[arg-type]


def test_a_field_without_a_default_may_not_follow_one_that_has_one() -> None:
    with pytest.raises(TypeError, match="non-default"):

        class Wrong(NamedTuple):
            partition: int = 0
            topic: str  # type: ignore[misc]


def test_members_are_those_of_typing() -> None:
    class Ours(NamedTuple):
        topic: str
        partition: int = 0

    assert set(dir(Ours)) - set(dir(Same)) == set()
    assert set(dir(Same)) - set(dir(Ours)) <= {"__orig_bases__"}
