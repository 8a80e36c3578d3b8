"""Opening what lies in log directories: by a glance after a clean stop, by reading it after a crash."""
