"""Programs to read and to run; tests/spark and tests/test_examples.py run them too."""
