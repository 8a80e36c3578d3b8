"""What Fetch is made of; `apis/fetch.py` has the order of events.

sessions    what a client has asked for, from one request to the next (KIP-227)
plan        the answer of each partition, and the read of its records
progress    what a fetch tells of its follower
waits       what stays of a plan for the next
waiting     parked fetches, and slow disks
answer      the response
replica     who fetches
followed    partitions that this node follows, for those who may read there
"""
