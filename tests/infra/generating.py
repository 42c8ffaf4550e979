"""The permissions of the roles that call providers and settle."""

from typing import Final

from tests.infra.translation import ROOT
from tollgate.routing.file.compile import compile_catalog
from tollgate.routing.file.permissions import compile_permissions

NEEDED: Final = compile_permissions(compile_catalog(ROOT / "routing.yaml").routing)

# What calls providers and settles may do.
GENERATES: Final = {
    "CoreTable where pk begins with C#": {"dynamodb:UpdateItem"},
    "LedgerTable": {"dynamodb:BatchGetItem", "dynamodb:UpdateItem"},
    "GenerationsTable": {"dynamodb:PutItem"},
    **{secret: {"secretsmanager:GetSecretValue"} for secret in NEEDED.secrets},
    **{guardrail: {"bedrock:ApplyGuardrail"} for guardrail in NEEDED.guardrails},
    **{
        model: {
            *({"bedrock:InvokeModelWithResponseStream"} if model in NEEDED.models else ()),
            *({"bedrock:CountTokens"} if model in NEEDED.counted_models else ()),
        }
        for model in (*NEEDED.models, *NEEDED.counted_models)
    },
    **{model: {"bedrock:InvokeModel"} for model in NEEDED.whole_models},
    **{project: {"bedrock:InvokeModel"} for project in NEEDED.bedrock_projects},
    **{
        f"{grant.resource} for {', '.join(grant.models)}": {"bedrock-mantle:CreateInference"}
        for grant in NEEDED.mantle
    },
    **{it: {"sagemaker:InvokeEndpoint"} for it in NEEDED.sagemaker_endpoints},
}
