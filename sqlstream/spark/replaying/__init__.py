"""Runs a past batch again on a copy of its checkpoint."""
