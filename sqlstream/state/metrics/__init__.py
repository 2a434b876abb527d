"""The metrics of a run: their names and labels, their values, and its health."""
