"""Share groups (KIP-932): consumers that share partitions, each record acknowledged by itself.

The group coordinator keeps members, epochs and assignments here, and which partitions have a state at the
share coordinator. `events.py` has the work that a group asks the share coordinator for. `heartbeat.py` adds
and removes members, `target.py` and `assignors/` assign partitions, `initializing.py` requests states for new
partitions, and `describe.py` describes a group. `start_offsets.py` describes start offsets, `offsets.py` sets
and deletes them, and `deletion.py` selects the states to delete with a group or a topic.
"""
