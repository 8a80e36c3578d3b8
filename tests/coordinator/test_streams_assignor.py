"""The sticky task assignor: the promises it makes.

That it divides the tasks of random groups as Apache Kafka does is tested in
interop/tests/test_streams_groups.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pykafka_broker.coordinator.groups.core.streams.assignor import ASSIGNOR, sticky
from pykafka_broker.coordinator.groups.core.streams.assignor.processes import ProcessLoad
from pykafka_broker.coordinator.groups.core.streams.assignor.spec import (
    GroupSpec,
    MemberSpec,
    SubtopologySpec,
    TaskAssignorError,
)
from pykafka_broker.coordinator.groups.core.streams.tasks import TaskId, Tasks, task_ids

STATEFUL = {"0": SubtopologySpec(4, is_stateful=True)}
STATELESS = {"0": SubtopologySpec(4)}


def some(*partitions: int) -> dict[str, frozenset[int]]:
    return {"0": frozenset(partitions)}


def test_the_tasks_of_an_application_are_spread_over_its_processes_and_their_threads() -> None:
    members = {"a1": MemberSpec("a"), "a2": MemberSpec("a"), "b1": MemberSpec("b"), "b2": MemberSpec("b")}

    result = ASSIGNOR(GroupSpec(members, STATELESS))

    assert sorted(len(tasks.active["0"]) for tasks in result.values()) == [1, 1, 1, 1]


def test_a_newcomer_gets_what_the_others_have_above_their_share() -> None:
    members = {
        "a": MemberSpec("a", Tasks(some(0, 1))),
        "b": MemberSpec("b", Tasks(some(2, 3))),
        "c": MemberSpec("c"),
    }

    result = ASSIGNOR(GroupSpec(members, {"0": SubtopologySpec(6)}))

    assert result["a"] == Tasks(some(0, 1))
    assert result["b"] == Tasks(some(2, 3))
    assert result["c"] == Tasks(some(4, 5))


def test_the_tasks_of_a_lost_process_go_to_those_that_have_their_state() -> None:
    members = {
        "a": MemberSpec("a", Tasks(some(0), some(3))),
        "b": MemberSpec("b", Tasks(some(1), some(2))),
    }

    result = ASSIGNOR(GroupSpec(members, STATEFUL))

    assert {name: tasks.active for name, tasks in result.items()} == {"a": some(0, 3), "b": some(1, 2)}


def test_a_standby_is_in_another_process_than_its_active_task() -> None:
    members = {"a1": MemberSpec("a"), "a2": MemberSpec("a"), "b": MemberSpec("b")}

    result = ASSIGNOR(GroupSpec(members, STATEFUL, num_standby_replicas=1))

    of_a = [*task_ids(result["a1"].active), *task_ids(result["a2"].active)]
    assert sorted(task_ids(result["b"].standby)) == sorted(of_a)


def test_tasks_without_state_have_no_standbys() -> None:
    members = {"a": MemberSpec("a"), "b": MemberSpec("b")}

    result = ASSIGNOR(GroupSpec(members, STATELESS, num_standby_replicas=1))

    assert not any(tasks.standby for tasks in result.values())


def test_warm_up_tasks_are_taken_away_and_count_for_nothing() -> None:
    members = {"a": MemberSpec("a", Tasks(warmup=some(0, 1, 2, 3))), "b": MemberSpec("b")}

    result = ASSIGNOR(GroupSpec(members, STATEFUL))

    assert not any(tasks.warmup for tasks in result.values())
    assert result == ASSIGNOR(GroupSpec({"a": MemberSpec("a"), "b": MemberSpec("b")}, STATEFUL))


def test_tasks_without_members_cannot_be_assigned() -> None:
    with pytest.raises(TaskAssignorError, match="No process available to assign active task 0_0"):
        ASSIGNOR(GroupSpec({}, STATELESS))


def test_an_application_without_tasks_or_members_is_assigned_nothing() -> None:
    assert ASSIGNOR(GroupSpec({}, {})) == {}
    assert ASSIGNOR(GroupSpec({"a": MemberSpec("a")}, {})) == {"a": Tasks()}


# ---- random groups ----


PARTS = st.dictionaries(
    st.sampled_from(["0", "1", "2", "3"]), st.builds(SubtopologySpec, st.integers(1, 9), st.booleans())
)


@st.composite
def groups(draw: st.DrawFn) -> GroupSpec:
    """A group with a past: each member has had some tasks, each active task was at one."""
    parts = draw(PARTS)
    names = draw(st.lists(st.sampled_from("abcdefgh"), min_size=1, unique=True))
    active: dict[str, dict[str, set[int]]] = {name: {} for name in names}
    standby: dict[str, dict[str, set[int]]] = {name: {} for name in names}
    for part, spec in parts.items():
        for partition in range(spec.task_count):
            owner = draw(st.sampled_from([None, *names]))
            if owner is not None:
                active[owner].setdefault(part, set()).add(partition)
            holder = draw(st.sampled_from([None, *names]))
            if holder is not None:
                standby[holder].setdefault(part, set()).add(partition)
    members = {
        name: MemberSpec(
            draw(st.sampled_from("xyz")),
            Tasks(
                {part: frozenset(partitions) for part, partitions in active[name].items()},
                {part: frozenset(partitions) for part, partitions in standby[name].items()},
            ),
        )
        for name in names
    }
    return GroupSpec(members, parts, draw(st.integers(0, 3)))


def all_tasks(spec: GroupSpec, *, stateful_only: bool = False) -> list[TaskId]:
    return [
        TaskId(name, partition)
        for name, part in spec.subtopologies.items()
        if part.is_stateful or not stateful_only
        for partition in range(part.task_count)
    ]


def check(spec: GroupSpec, result: Mapping[str, Tasks]) -> None:
    """What every assignment must be."""
    processes = {member.process_id for member in spec.members.values()}
    holders: dict[TaskId, list[str]] = {}
    for name, tasks in result.items():
        for task in (*task_ids(tasks.active), *task_ids(tasks.standby)):
            holders.setdefault(task, []).append(spec.members[name].process_id)
    assert sorted(task for tasks in result.values() for task in task_ids(tasks.active)) == sorted(
        all_tasks(spec)
    )
    stateful = set(all_tasks(spec, stateful_only=True))
    for task, found in holders.items():
        assert len(set(found)) == len(found), "twice in a process"
        replicas = spec.num_standby_replicas if task in stateful else 0
        assert len(found) == min(1 + replicas, len(processes)), "too few or too many standbys"


def check_stays(spec: GroupSpec, result: Mapping[str, Tasks]) -> None:
    """No active task leaves a member that has no more than its share."""
    for name, member in spec.members.items():
        had = set(task_ids(member.tasks.active)) & set(all_tasks(spec))
        if len(had) <= len(all_tasks(spec)) // len(spec.members):
            assert had <= set(task_ids(result[name].active)), "a task has moved for nothing"


@settings(max_examples=150)
@given(groups())
def test_every_task_is_active_once_and_has_its_standbys_in_other_processes(spec: GroupSpec) -> None:
    result = ASSIGNOR(spec)

    assert set(result) == set(spec.members)
    check(spec, result)
    check_stays(spec, result)


@given(PARTS, st.integers(1, 8), st.integers(0, 2))
def test_a_new_application_is_balanced_and_repeating_it_moves_no_active_task(
    parts: dict[str, SubtopologySpec], count: int, replicas: int
) -> None:
    members = {f"m{number}": MemberSpec(f"p{number}") for number in range(count)}

    result = ASSIGNOR(GroupSpec(members, parts, replicas))

    loads = [sum(map(len, tasks.active.values())) for tasks in result.values()]
    assert max(loads) - min(loads) <= 1
    again = {name: MemberSpec(member.process_id, result[name]) for name, member in members.items()}
    repeated = ASSIGNOR(GroupSpec(again, parts, replicas))
    assert {name: tasks.active for name, tasks in repeated.items()} == {
        name: tasks.active for name, tasks in result.items()
    }


# ---- planted bugs ----


def _forgets_what_processes_have(process: ProcessLoad, task: TaskId) -> bool:
    return False


def _finds_no_process_without_a_task(process: ProcessLoad, task: TaskId) -> bool:
    return True


def _drops_a_task(spec: GroupSpec, *, stateful_only: bool) -> list[TaskId]:
    return all_tasks(spec, stateful_only=stateful_only)[1:]


def _every_task_has_state(spec: GroupSpec, *, stateful_only: bool) -> list[TaskId]:
    return all_tasks(spec)


def _forgets_former_tasks(tasks: object) -> list[TaskId]:
    return []


PLANTED: list[tuple[object, str, Callable[..., Any]]] = [
    (ProcessLoad, "has", _forgets_what_processes_have),
    (ProcessLoad, "has", _finds_no_process_without_a_task),
    (sticky, "task_ids", _forgets_former_tasks),
    (sticky, "_all_tasks", _drops_a_task),
    (sticky, "_all_tasks", _every_task_has_state),
]


@pytest.mark.parametrize(("owner", "name", "wrong"), PLANTED)
def test_a_planted_bug_is_caught(
    owner: object, name: str, wrong: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, wrong)

    @settings(max_examples=300, database=None, derandomize=True, phases=[Phase.generate])
    @given(groups())
    def promises(spec: GroupSpec) -> None:
        result = ASSIGNOR(spec)
        check(spec, result)
        check_stays(spec, result)

    with pytest.raises((AssertionError, ExceptionGroup)):
        promises()
