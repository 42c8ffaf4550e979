"""The ledger before a DynamoDB in memory that has the limits of a real one, on simulated time."""
