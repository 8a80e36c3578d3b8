"""What ShareFetch, ShareAcknowledge and the APIs of share groups and their state have in common."""
