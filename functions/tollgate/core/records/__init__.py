"""Records of generations, their sums by day, and entries of the audit log."""
