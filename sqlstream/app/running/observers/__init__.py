"""What follows a run without slowing it: metrics and alerts."""
