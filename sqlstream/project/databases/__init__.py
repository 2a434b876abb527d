"""Databases that sinks write: how each stores Spark's types, and the SQL that applies a micro-batch."""
