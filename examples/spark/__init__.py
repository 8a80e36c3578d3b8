"""Worked examples of pipelines on Spark: each is a program, and functions over a SparkSession."""
