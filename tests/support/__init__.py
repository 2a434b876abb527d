"""What several tests share: projects, rows, servers' data, and how they are compiled or rendered."""
