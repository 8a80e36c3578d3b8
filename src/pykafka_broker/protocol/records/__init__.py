"""Record batches: the same bytes in Produce, in Fetch and in the log."""
