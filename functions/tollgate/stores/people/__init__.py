"""Teams, members and their sessions, in DynamoDB."""
