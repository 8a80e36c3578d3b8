"""What a family of metrics is.

Names, labels and types are those that Kafka's MBeans get from the JMX exporter with Strimzi's rules: the type
and the name of the MBean in lower case, `_total` for the count of a meter, the keys of the MBean as labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, Union

from pykafka_broker.metrics.node_parts import Scrape
from pykafka_broker.system.named_tuple import NamedTuple

#: The labels as text (`labelled`), and the value.
Sample = tuple[str, Union[int, float]]

#: Samples; None where the event loop may run other work, because the next sample takes long.
Pausing = Iterator[Union[Sample, None]]

Kind = Literal["counter", "gauge", "untyped"]


class Family(NamedTuple):
    """All samples of one name."""

    name: str
    kind: Kind
    #: The names of its labels, separated by blanks.
    labels: str
    meaning: str
    #: The MBean of Apache Kafka and its attribute; "" if Kafka has none.
    mbean: str
    #: Yields the samples. The event loop runs other work after each slice of lines (`exposition.py`), so this
    #: must not iterate over a table that may change meanwhile.
    read: Callable[[Scrape], Iterable[Union[Sample, None]]]


def labelled(**labels: object) -> str:
    """Labels as text; "" if there are none."""
    shown = ",".join(f'{name}="{escaped(str(value))}"' for name, value in labels.items())
    return f"{{{shown}}}" if shown else ""


def escaped(value: str) -> str:
    """The value of a label as the text format wants it."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
