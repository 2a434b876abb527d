"""`sqlstream source`: how fresh the data of each source is, and which columns it has."""
