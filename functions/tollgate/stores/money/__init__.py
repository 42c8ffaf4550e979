"""Credit, holds and budgets in DynamoDB, and the jobs that maintain and audit them."""
