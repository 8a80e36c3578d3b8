"""Share groups (KIP-932): consumers that share partitions, each record acknowledged by itself.

The group coordinator keeps members, epochs and assignments here, and which partitions have a state at the
share coordinator; the state itself is there, and `events.py` has the work that a group asks it for.
`heartbeat.py` lets members in and out, `target.py` and `assignors/` share out partitions, `initializing.py`
has states made for new partitions, and `describe.py` shows a group. `start_offsets.py` shows where a group
begins to read, `offsets.py` sets and deletes that, and `deletion.py` says which states go with a group or a
topic.
"""
