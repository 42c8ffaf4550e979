"""The role that Bedrock assumes: the files of its jobs, and nothing else.

Keeps C83.
"""

from tests.infra.generating import NEEDED
from tests.infra.test_roles import compile_permissions
from tests.infra.translation import BEDROCK_ROLE, Stack
from tollgate.core.batches import Batch
from tollgate.stores.rules.object_names import batch_folder


def test_c83_bedrock_reads_and_writes_nothing_but_the_files_of_its_jobs(stack: Stack) -> None:
    role = stack.properties("AWS::IAM::Role")[BEDROCK_ROLE]
    assert compile_permissions(role) == {
        "${ObjectsBucket.Arn}/batches/*/jobs/*": {"s3:GetObject", "s3:PutObject"},
        "ObjectsBucket": {"s3:ListBucket"},
        **{name: {"bedrock:InvokeModel"} for name in NEEDED.batch_profiles},
    }
    (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert statement == {
        "Effect": "Allow",
        "Principal": {"Service": "bedrock.amazonaws.com"},
        "Action": "sts:AssumeRole",
        "Condition": {
            "StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}},
            "ArnLike": {"aws:SourceArn": [{"Fn::Sub": jobs} for jobs in NEEDED.batch_jobs]},
        },
    }
    named = {
        name
        for name, function in stack.functions.items()
        if "TOLLGATE_BEDROCK_BATCH_ROLE" in function["Environment"]["Variables"]
    }
    assert named == {"ApiFunction", "BatchFunction"}
    # No other object of a batch is in a folder with this name.
    batch = Batch(
        id="batch_1",
        workspace_id="jobs",
        key_id="k",
        input_file_id="f",
        endpoint="/v1/chat/completions",
        expires_s=1,
    )
    assert "/jobs/" not in batch_folder(batch)
    assert batch_folder(batch).startswith("batches/")
