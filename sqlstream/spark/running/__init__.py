"""Queries: prepared, started, supervised, stopped."""
