"""What follows a run without slowing it: records, metrics and their exports."""
