"""Batches in DynamoDB, and their contents in a bucket or folder."""
