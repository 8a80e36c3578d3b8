"""The newest decisions of a node: what is found again, what is counted, and what is forgotten."""

from __future__ import annotations

from pykafka_broker.machine.history import MOST_TOLD, Decision, Entry, History, Kind
from pykafka_broker.system.wording import MOST_CHARACTERS


class Time:
    def __init__(self) -> None:
        self.ms = 0

    def now(self) -> int:
        return self.ms


def denial(topic: str, *names: str, measured: str = "") -> Decision:
    return Decision(Kind.REQUEST, names or ("app",), f"READ on {topic} was denied.", "Add an ACL.", measured)


def test_a_decision_is_found_under_each_of_its_names_and_no_other_kind() -> None:
    history = History(lambda: 7)
    history.tell(denial("orders", "app", "User:alice"))

    told = [Entry(7, 7, 1, "READ on orders was denied.", "Add an ACL.")]
    assert history.about(Kind.REQUEST, "app") == history.about(Kind.REQUEST, "User:alice") == told
    assert history.about(Kind.REQUEST, "User:bob") == history.about(Kind.GROUP, "app") == []


def test_a_decision_that_is_repeated_is_one_entry_with_the_newest_measure() -> None:
    time = Time()
    history = History(time.now)
    history.tell(denial("orders", measured=" 5 ms."))
    history.tell(denial("clicks"))
    time.ms = 9
    history.tell(denial("orders", measured=" 6 ms."))

    assert history.about(Kind.REQUEST, "app") == [
        Entry(0, 0, 1, "READ on clicks was denied.", "Add an ACL."),
        Entry(0, 9, 2, "READ on orders was denied. 6 ms.", "Add an ACL."),
    ]


def test_a_full_ring_forgets_what_was_repeated_least_recently_and_leaves_other_kinds_alone() -> None:
    history = History(lambda: 0, most_entries=2)
    history.tell(Decision(Kind.GROUP, ("g",), "Member a joined."))
    for topic in ("one", "two", "one", "three"):
        history.tell(denial(topic))

    assert [entry.text for entry in history.about(Kind.REQUEST, "app")] == [
        "READ on one was denied.",
        "READ on three was denied.",
    ]
    assert len(history.about(Kind.GROUP, "g")) == 1


def test_the_characters_of_a_ring_are_limited_whatever_clients_call_themselves() -> None:
    history = History(lambda: 0, most_characters=4 * (MOST_CHARACTERS + len("...")))
    long = "x" * 32_767
    history.tell(Decision(Kind.REQUEST, (long,), long, long, long))
    [entry] = history.about(Kind.REQUEST, long)
    assert len(entry.text) + len(entry.remedy) == 3 * (MOST_CHARACTERS + len("..."))

    history.tell(Decision(Kind.REQUEST, ("app",), "short"))

    assert history.about(Kind.REQUEST, long) == []
    assert [entry.text for entry in history.about(Kind.REQUEST, "app")] == ["short"]


def test_an_answer_has_the_newest_entries() -> None:
    history = History(lambda: 0)
    for number in range(MOST_TOLD + 2):
        history.tell(denial(f"t{number}"))

    told = history.about(Kind.REQUEST, "app")
    assert (len(told), told[0].text) == (MOST_TOLD, "READ on t2 was denied.")
