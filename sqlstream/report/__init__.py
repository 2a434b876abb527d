"""Formats plain values as terminal text and JSON."""
