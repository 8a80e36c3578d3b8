"""Looking for damage in whole logs.

partition_check.py   on request, all files of a partition: `log verify`
mend.py              the remedies for the findings: `log repair`
accept_loss.py       damaged offsets given up: `log repair --accept-loss`
scrubber.py          closed segments, from time to time, in the background
"""
