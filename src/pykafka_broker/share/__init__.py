"""A share partition: the records of a partition that a share group has, and what becomes of each (KIP-932).

core/                  the decisions (pure)
share_partition.py     one share partition on its leader: the shell around the core
share_partitions.py    the share partitions of all groups, each made by its first fetch
writes.py              the writes to the share coordinator, in order
settings.py            what a share group has configured
"""
