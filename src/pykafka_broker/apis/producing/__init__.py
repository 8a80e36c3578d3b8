"""What Produce is made of: a batch, its transaction, and the answer; `apis/produce.py` has the order."""
