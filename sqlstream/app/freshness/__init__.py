"""`source freshness`: the time of the newest data of each source, from files, logs, offsets or a column."""
