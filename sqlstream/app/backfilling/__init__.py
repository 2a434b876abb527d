"""What `sqlstream backfill` needs: the history of each source, and the steps of a batch that is never lost."""
