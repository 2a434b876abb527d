"""Compares two versions of a stateful query without Spark."""
