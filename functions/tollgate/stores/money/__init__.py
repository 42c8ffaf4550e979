"""Credit, holds, budgets and the jobs that keep the books right, in DynamoDB."""
