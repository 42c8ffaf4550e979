"""Objects in S3 are encrypted as the bucket says, with the operator's key where there is one.

Keeps C68, C69.
"""

from typing import Final

import boto3
import pytest

from tests.stores import HandClock
from tollgate.aws.objects import S3Objects
from tollgate.aws.sigv4 import Credentials, Signer

REGION: Final = "us-east-1"
KEY: Final = "arn:aws:kms:us-east-1:123456789012:key/abc"
BUCKET: Final = "encrypted-by-default"


@pytest.mark.parametrize("algorithm", ["aws:kms", "AES256"])
async def test_an_object_gets_the_encryption_of_its_bucket(moto_url: str, algorithm: str) -> None:
    client = boto3.client(
        "s3",
        endpoint_url=moto_url,
        region_name=REGION,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    default = {"SSEAlgorithm": algorithm}
    if algorithm == "aws:kms":
        default["KMSMasterKeyID"] = KEY
    client.create_bucket(Bucket=BUCKET)
    client.put_bucket_encryption(
        Bucket=BUCKET,
        ServerSideEncryptionConfiguration={
            "Rules": [{"ApplyServerSideEncryptionByDefault": default}]
        },
    )
    signer = Signer("s3", REGION, lambda: Credentials("test", "test"), HandClock())
    store = S3Objects(BUCKET, REGION, signer, endpoint_url=moto_url)
    await store.put("answers/one", b"text")
    await store.close()
    kept = client.head_object(Bucket=BUCKET, Key="answers/one")
    assert kept["ServerSideEncryption"] == algorithm
    assert kept.get("SSEKMSKeyId") == default.get("KMSMasterKeyID")
    client.close()
