"""Sinks that are tables of a database: each micro-batch is one transaction with a record of the batch."""
