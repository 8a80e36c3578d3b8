"""Log folders as a data source of Spark: `format("kafka_log")`. No broker is asked.

    from pykafka_broker.spark import register_kafka_log

    register_kafka_log(spark)
    spark.read.format("kafka_log").option("subscribe", "orders").load("data")

The folders are those that Apache Kafka or this broker writes, live or copied. A large partition is read by
several tasks: its offsets are divided where the indexes of its segments know batches. Tasks read with
`pykafka_broker.arrow` and hand RecordBatches to Spark.

    registration.py   register_kafka_log()
    data_source.py    the format
    readers.py        its readers, as Spark 4.0 and 4.1 have them
    admission.py      the stream's reader for Spark 4.2, which says how much a batch may take stream.py
    where a stream is, and what each of its batches reads batch.py          what a batch reads filters.py
    which folders and offsets the filters of a query leave; pure planning.py       offsets for places and
    times; ranges -> splits, one for each task folders.py        which folders are read records.py        a
    split -> RecordBatches as Spark takes them losses.py         offsets that should be there and are not
    options.py        what a caller asks for, checked; pure offsets.py        positions of a stream, as its
    checkpoint has them; caps; pure

It needs Spark 4.0, where data sources in Python began, and the extras `spark` and `arrow`, on the executors
too. Spark passes classes and splits to them by name, so the package has to be installed there, and each
folder has to be there under the same path.
"""
