"""What a Python process of Spark pays between two tasks for the zip files that it may import from.

Before each task Spark has Python look anew at the places of modules (`importlib.invalidate_caches`). Python
3.11 then reads the directories of all zip files at once, in Python: those of pyspark, and of Spark's own jar,
which is among the places too. That is 75 to 150 ms of processor time for a task or a plan, more than a query
of a small topic takes otherwise. Newer releases of Python read them when they are needed.
"""

from __future__ import annotations

import sys
from zipimport import zipimporter


def forget_zip_files() -> None:
    """Let go of the importers of zip files. The next import that looks for one makes it again, with the
    directory as it was read first: Spark puts what it adds into files of their own.
    """
    found = [path for path, finder in sys.path_importer_cache.items() if isinstance(finder, zipimporter)]
    for path in found:
        del sys.path_importer_cache[path]
