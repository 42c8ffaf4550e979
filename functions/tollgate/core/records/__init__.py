"""Generation records, their daily sums, and audit log entries."""
