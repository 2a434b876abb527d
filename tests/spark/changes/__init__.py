"""Edits of queries on their checkpoints, judged by Spark."""
