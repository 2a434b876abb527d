"""`sqlstream backfill`: history that a stream has left out, written as batches of the stream."""
