"""Pure decisions and records of runs: the ledger, whether a changed query may resume, what a run reports."""
