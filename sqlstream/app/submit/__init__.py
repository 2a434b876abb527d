"""`sqlstream submit`: the same run with its driver in the cluster."""
