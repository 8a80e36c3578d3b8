"""The share coordinator's pure core (KIP-932): which records of a partition a share group has dealt with.

state        the state of each share partition, and when its log may be cut
batches      how new state batches are combined with known ones
records      snapshots and updates in `__share_group_state`, and how they rebuild the state
loading      from a log to the state
events       requests, timers, answers
checks       why a request is refused
requests     Initialize, Read, Write, Delete, ReadSummary
housekeeping snapshots of idle share partitions, cuts of the log, deleted topics
turn         the parts of a transition
transitions  the entry
"""
