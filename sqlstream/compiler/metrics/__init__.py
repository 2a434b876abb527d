"""Rows of metrics and alerts that runs write to sinks: their columns, and their outputs."""
