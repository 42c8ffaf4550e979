"""The catalog's permissions: exact ids and secrets, and nothing that would widen a policy."""

import pytest

from tests.unit.routing.catalogs import endpoint, model, provider, routing
from tollgate.routing.permissions import NotPermissible, Permissions, permissions

BEDROCK = {"codec": "bedrock", "transport": "bedrock_runtime", "region": "eu-west-1"}
PROFILES = "arn:${AWS::Partition}:bedrock:eu-west-1:${AWS::AccountId}:inference-profile/"
SECRETS = "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:"


def needed_for(upstream: str, row: dict[str, str] = BEDROCK) -> Permissions:
    return permissions(
        routing(
            providers={"aws": row},
            models={"a/b": model(endpoint("aws", upstream))},
            aliases={},
            routes={},
        )
    )


def test_a_model_is_allowed_where_its_provider_is() -> None:
    assert needed_for("deepseek.v3.2").models == (
        "arn:${AWS::Partition}:bedrock:eu-west-1::foundation-model/deepseek.v3.2",
    )


@pytest.mark.parametrize("geography", ["eu", "global", "us-gov"])
def test_a_profile_is_allowed_with_its_model_in_every_region(geography: str) -> None:
    assert needed_for(f"{geography}.amazon.nova-2-lite-v1:0").models == (
        "arn:${AWS::Partition}:bedrock:*::foundation-model/amazon.nova-2-lite-v1:0",
        f"{PROFILES}{geography}.amazon.nova-2-lite-v1:0",
    )


def test_an_arn_is_allowed_as_it_stands() -> None:
    arn = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc"
    assert needed_for(arn).models == (arn,)


@pytest.mark.parametrize(
    "upstream", ["*", "amazon.*", "a\n- Effect: Allow", "${AWS::Region}", "a b"]
)
def test_an_id_that_would_widen_the_policy_is_refused(upstream: str) -> None:
    with pytest.raises(NotPermissible):
        needed_for(upstream)


def test_bedrock_is_allowed_by_either_of_its_interfaces() -> None:
    invoke = {**BEDROCK, "codec": "anthropic", "transport": "bedrock_invoke"}
    assert needed_for("anthropic.claude", invoke).models == (
        "arn:${AWS::Partition}:bedrock:eu-west-1::foundation-model/anthropic.claude",
    )


def test_a_sagemaker_endpoint_is_allowed_by_its_name() -> None:
    row = {"codec": "openai_chat", "transport": "sagemaker_runtime", "region": "eu-west-1"}
    found = needed_for("My-Endpoint", row)
    assert found.models == ()
    assert found.endpoints == (
        "arn:${AWS::Partition}:sagemaker:eu-west-1:${AWS::AccountId}:endpoint/my-endpoint",
    )


def test_guardrails_are_allowed_where_they_are_applied() -> None:
    offer = {**endpoint("aws", "amazon.nova"), "guardrail": {"id": "of-model", "version": "1"}}
    route = {"description": "R", "try": ("a/b",), "guardrail": {"id": "of-route", "version": "2"}}
    found = permissions(
        routing(
            providers={"aws": BEDROCK},
            models={"a/b": model(offer)},
            aliases={},
            routes={"guarded": route},
        )
    )
    place = "arn:${AWS::Partition}:bedrock:eu-west-1:${AWS::AccountId}:guardrail/"
    assert found.guardrails == (f"{place}of-model", f"{place}of-route")


def test_each_secret_is_allowed_once_by_its_whole_name() -> None:
    key = {"secret": "team/openai", "env": "OPENAI_API_KEY"}
    found = permissions(
        routing(
            providers={
                "one": provider(key=key),
                "two": provider(key=key),
                "three": provider(key={"env": "ONLY"}),
            },
            models={"a/b": model(endpoint("one", "m"))},
            aliases={},
            routes={},
        )
    )
    assert found == Permissions(
        guardrails=(),
        models=(),
        endpoints=(),
        secrets=(f"{SECRETS}team/openai-??????",),
    )
