"""The cost of zip files on the import path of a Python process of Spark, between two tasks.

Before each task Spark has Python look anew at the places of modules (`importlib.invalidate_caches`). Python
3.11 then reads the directories of all zip files at once, in Python: those of pyspark, and of Spark's own jar,
which is among the places too. That is 75 to 150 ms of processor time for a task or a plan, more than a query
of a small topic takes otherwise. Newer releases of Python read them when they are needed.
"""

from __future__ import annotations

import sys
from zipimport import zipimporter


def forget_zip_files() -> None:
    """Drop the importers of zip files. The next import makes them again, with the directory as it was first
    read: Spark puts what it adds into new files.
    """
    found = [path for path, finder in sys.path_importer_cache.items() if isinstance(finder, zipimporter)]
    for path in found:
        del sys.path_importer_cache[path]
