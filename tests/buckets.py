"""Buckets on the stand-ins for AWS, which ask for no particular credentials."""

import boto3


def create_bucket(url: str, name: str) -> None:
    """Create a bucket at a stand-in."""
    client = boto3.client(
        "s3",
        "us-east-1",
        endpoint_url=url,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    client.create_bucket(Bucket=name)
    client.close()
