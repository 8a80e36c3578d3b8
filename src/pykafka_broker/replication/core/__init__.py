"""The decisions of replication about one partition, led or followed here: pure, no I/O, no clock.

    state.py           Leadership: epoch, replicas, ISR, the progress of each follower
    events.py          its events: a follower fetched, time passed, brokers changed, the controller answered
    transitions.py     (state, event) -> Step; and `lead`, which begins or renews a leadership from metadata
    high_watermark.py  the offset below which every replica that counts has the log
    in_sync.py         who joins the ISR and who has to leave it
    following.py       a partition that another broker leads: what an answer of the leader makes of it
    fetch_session.py   the follower's side of an incremental fetch session
    access.py          the limit of a read, who may write with acks=all, which leader epoch is current
    low_watermark.py   the offset below which every live replica has deleted its records
    nearest.py         the replica from which a consumer reads best
    throttling.py      which replicas are slowed down, and when

Eligible leader replicas (KIP-966) are the controller's; a leader only holds its high watermark while fewer
replicas than min.insync.replicas are in sync.
"""
