"""The files of a target's storage: checkpoints, ledgers, logs."""
