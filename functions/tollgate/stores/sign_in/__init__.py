"""Codes of sign-ins in DynamoDB."""
