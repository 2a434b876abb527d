"""The events of a run, and the records that remain."""
