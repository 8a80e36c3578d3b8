"""One segment of a log: its file, its indexes, and the trust in its bytes.

Four words for reading batches, each for one thing:

    walk      reads headers and trusts them (header_walk.py)
    survey    compares the headers of several segments with the checkpoints (survey.py)
    verify    asks of batches whether all are sound, fast; one that is odd leads to a scan (segment_scan.py)
    scan      trusts nothing, and finds damaged and torn batches (batch_scan.py, segment_scan.py)
"""
