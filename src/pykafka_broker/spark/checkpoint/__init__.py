"""A streaming checkpoint of Spark beside the topics that it reads: do they still belong together?

    files.py        the folder of a checkpoint
    topics.py       the topics, as the cluster describes them
    comparison.py   the positions compared with the topics, and the offsets to go on at; pure
    inspection.py   a checkpoint compared with its topics as a cluster has them
    sentences.py    what is found, in sentences; pure
    repair.py       new offset files, each with the old one beside it

A checkpoint names topics by their names. A topic that was deleted and created anew has another id, which
Spark does not keep; `files.write_topic_ids` puts the ids into the folder, where the next look finds them.
"""
