"""Pure decisions of the ledger: no I/O and no DynamoDB."""
