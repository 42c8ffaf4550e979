"""DynamoDB, S3 and Secrets Manager: protocols, pure rules, and the stores that implement them."""
