"""The files below every log: the file system port, names, checkpoints, log directories, worker processes."""
