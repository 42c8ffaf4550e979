"""Uploaded files: items and counts in DynamoDB, contents in S3 or in a local folder."""
