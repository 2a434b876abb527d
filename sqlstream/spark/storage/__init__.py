"""Read and write the files of a target's storage: checkpoints, ledgers, logs."""
