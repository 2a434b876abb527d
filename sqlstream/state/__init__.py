"""Pure decisions and records of runs: the ledger, whether a changed query can resume, what a run reports."""
