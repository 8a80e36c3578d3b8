"""Groups of Kafka Streams applications, whose tasks the coordinator assigns (KIP-1071), pure.

`tasks.py` has the tasks of a member, `topology/` what an application reads, keeps and needs created,
`assignor/` which member runs which task. `state.py` has the group, `records.py` and `topology_record.py` its
records and their replay, `reconciliation.py` the steps of a member to its target, `endpoints.py` which
instance answers queries for which partition, `status.py` what is wrong.

`heartbeat.py` handles the requests of members (`events.py`), with `checks.py` for their validity, `target.py`
for a new assignment, `leaving.py` for members that leave, and `turn.py`; `describe.py` shows a group to
administrators, `commits.py` decides which clients may commit and fetch offsets. Each decision is about one
group, `(group, event) -> Step(group, records, effects)`; None stands for no group.

`handlers.py` finds the group of an event among those of a shard, and `kind.py` answers what every kind of
group is asked.
"""
