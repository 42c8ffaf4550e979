"""Sign-in codes in DynamoDB."""
