"""Test doubles of the stores, in memory; contract tests compare them with those on DynamoDB."""
