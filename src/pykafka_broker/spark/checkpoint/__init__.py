"""A streaming checkpoint of Spark beside the topics that it reads: do they still belong together?

    files.py        what is in the folder of a checkpoint
    topics.py       what the cluster says of the topics
    comparison.py   where each partition stands, and where it may go on; pure
    repair.py       new offset files, each with the old one beside it

A checkpoint names topics by their names. A topic that was deleted and created anew has another id, which
Spark does not keep; `files.write_topic_ids` puts the ids into the folder, where the next look finds them.
"""
