"""Record batches: what travels in Produce and Fetch and lies in the log, byte for byte."""
