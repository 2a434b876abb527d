"""Unit tests of streams: checks cases against the compiled project, runs them on Spark, and compares the results."""
