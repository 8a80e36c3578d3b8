"""Whole nodes on simulated machines: `broker/node.py` as it runs elsewhere, on the clock, the network and the
disks of one seed.

wires.py            TCP between machines: connections that are slow, stalled, cut, or reset
node_process.py     the event loop of a node's process, with sockets and worker threads of the simulation
machine.py          a machine: a disk, an address, and the process that runs on it
chance.py           what a process draws at random comes from the seed
profile.py          which faults a seed has
client.py           one client: its connections, and what it knows of the cluster
producers.py        idempotent ones, with one batch or several on their way, and transactional ones
consumers.py        readers of all that is replicated, or of what is committed
members.py          members of groups, of both protocols
offsets.py          committed offsets of groups
administrator.py    moves of partitions, elections, and changes of configurations
committed.py        what replicas have below their high watermarks, held against each other
known_log.py        the log of a partition, as clients and replicas have shown it
ledger.py           what clients were promised: what must hold after every answer, and in the end
cluster.py          a cluster, its clients and its faults; what must hold while it runs
planted.py          mistakes that have to be found
"""
