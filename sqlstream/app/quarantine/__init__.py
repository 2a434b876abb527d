"""`sqlstream quarantine`: the rows that data tests keep from the sinks of a query, shown and released."""
