"""Runs a past batch again on a copy of its checkpoint, and history as a batch of a query."""
