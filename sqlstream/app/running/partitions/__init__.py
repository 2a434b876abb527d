"""Moves the state of queries to another number of partitions."""
