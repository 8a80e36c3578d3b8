"""Deterministic simulations: real cores on a simulated clock, network and disks, all of one seed.

world.py        the clock: events in the order of their time, one source of chance
network.py      messages that are late, lost, doubled, or held up by a partition
disk.py         a replica's files: what is synced, and what a crash may leave of the rest
profile.py      which faults a seed has, and how many
replica.py      one replica: carries out the steps of `raft/core`, as `raft/driver.py` does
invariants.py   what must hold after every event; violation.py: what is raised when it does not
quorum.py       a quorum of replicas, its clients and administrators, and its faults
planted.py      known mistakes, each of which the simulation finds
__main__.py     `make simulate`: as many seeds, or seconds, as asked for
"""
