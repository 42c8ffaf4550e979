"""What `make build` makes, held to its budgets and run."""
