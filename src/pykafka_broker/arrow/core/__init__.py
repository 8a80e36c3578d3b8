"""From bytes to columns, pure; no step works on a single record.

limits.py             the limits of memory, of waiting, and of RecordBatches
columns.py            the columns and their types
fetched.py            a fetch request, and the batches taken from its answer
stored_batches.py     a batch as it was fetched: wanted or not, checksum, decompression
open_transactions.py  aborted and open transactions, by markers
decoding.py           many batches -> columns of numbers
record_starts.py      where each record begins
varints.py            one number of each record
record_headers.py     the headers of those that have any
record_batches.py     columns of numbers -> a RecordBatch
values.py             formats, decoders, and the treatment of bad records
avro_types.py         Avro schema -> Arrow type
sections.py           batches, unpacked and put together within limits
assembly.py           batches -> RecordBatches within limits
profile/              what is in a topic: counts, hot keys, sizes, times
"""
