"""Reads documents in a Lambda function; large documents pass through the bucket."""
