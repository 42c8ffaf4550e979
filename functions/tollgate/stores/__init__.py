"""Stores on DynamoDB, S3 and Secrets Manager: their protocols, pure rules and implementations."""
