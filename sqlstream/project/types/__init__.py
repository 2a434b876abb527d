"""Spark's data types, and how declared schemas are read."""
