"""The decisions of replication about one partition led here: pure, no I/O, no clock.

    state.py           Leadership: epoch, replicas, ISR, the progress of each follower
    events.py          its events: a follower fetched, time passed, the controller refused a change
    transitions.py     (state, event) -> Step; and `lead`, which begins or renews a leadership from metadata
    high_watermark.py  the offset below which every replica that counts has the log
    in_sync.py         who joins the ISR and who has to leave it
    access.py          the limit of a read, who may write with acks=all, which leader epoch is current

Left out on purpose: reads from the nearest replica (KIP-392), whose choice would be a function in access.py.
Eligible leader replicas (KIP-966) are the controller's; a leader only holds its high watermark while fewer
replicas than min.insync.replicas are in sync.
"""
