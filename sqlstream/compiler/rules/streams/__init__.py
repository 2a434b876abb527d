"""Rules on streaming queries, one file per kind of operator."""
