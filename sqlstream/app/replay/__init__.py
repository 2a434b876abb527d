"""`sqlstream replay`: a past batch of a query, run again on a copy of its checkpoint."""
