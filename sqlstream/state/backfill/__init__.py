"""Backfills: a range of history that a query reads as one more batch, and the record of those that were done."""
