"""Deterministic simulations: the real core, and the real shell, on simulated machines, all of one seed.

world.py            the clock: events in the order of their time, one source of chance
network.py          messages that are late, lost, doubled, or held up by a partition
log.py              a log of batches, as the invariants look at it
profile.py          which faults a seed has, and how many
replica.py          a replica as the others see it; there are two kinds:
core_replica.py       carries out the steps of `raft/core` on the disk of core_disk.py: quick
shell_replica.py      `metadata/raft_host.py` over `raft/driver.py` and its storage, on files in memory
                      (shell_disk.py) and on an event loop of simulated time (process.py)
invariants.py       what must hold after every event; violation.py: what is raised when it does not
quorum.py           a quorum of replicas, its clients and administrators, and its faults
planted.py          known mistakes, each of which the simulation finds
planted_in_shell.py   those that only the shell can make; wrong.py: how they are planted
__main__.py         `make simulate`: as many seeds, or seconds, as asked for
"""
