"""API keys and their limits, in DynamoDB."""
