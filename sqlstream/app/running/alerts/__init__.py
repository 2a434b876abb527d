"""Alerts of a run: raised in the background, kept in a file, and delivered to their channels."""
