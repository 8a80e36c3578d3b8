"""Programs to read and to run; tests/spark runs them too."""
