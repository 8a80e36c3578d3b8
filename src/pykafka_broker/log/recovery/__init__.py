"""Opening log directories: after a clean stop by a look at the ends of logs, after a crash by scanning."""
