"""What Fetch is made of; `apis/fetch.py` has the order of events.

sessions    the partitions that a client fetches, from one request to the next (KIP-227)
plan        the answer of each partition, and the read of its records
progress    the progress of a follower, as its fetches show it
kept_waits  what one plan keeps for the next
parking     parked fetches, and slow disks
answer      the response
replica     the id of a fetching replica
followed    partitions that this node follows, for readers that may read there
"""
