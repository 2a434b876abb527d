"""Runs as text and JSON."""
