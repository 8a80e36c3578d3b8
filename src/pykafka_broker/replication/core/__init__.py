"""The decisions of replication about one partition, led or followed here: pure, no I/O, no clock.

    state.py           Leadership: epoch, replicas, ISR, the progress of each follower
    events.py          its events: a follower fetched, time passed, brokers changed, the controller answered
    transitions.py     (state, event) -> Step; and `lead`, which begins or renews a leadership from metadata
    high_watermark.py  the offset below which every replica that counts has the log
    in_sync.py         the followers that join the ISR and those that must leave it
    following.py       a partition that another broker leads: its state after each answer of the leader
    fetch_session.py   the follower's side of an incremental fetch session
    access.py          the limit of a read; checks of topic id, leader epoch and acks=all
    low_watermark.py   the offset below which every live replica has deleted its records
    nearest.py         the nearest replica for a consumer
    throttling.py      which replicas are throttled, and when

The controller decides on eligible leader replicas (KIP-966); a leader only does not move its high watermark
while fewer replicas than min.insync.replicas are in sync.
"""
