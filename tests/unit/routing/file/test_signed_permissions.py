"""Permissions for rows that sign requests in OpenAI's or Anthropic's format for Bedrock."""

from typing import Final

import pytest

from tests.unit.routing.catalogs import endpoint, model, provider, routing
from tollgate.cli.routing.permissions import (
    BEGIN,
    END,
    HOSTS_BEGIN,
    HOSTS_END,
    write_permissions,
)
from tollgate.routing.file.permissions import (
    MantleGrant,
    NotPermissible,
    Permissions,
    compile_permissions,
    mantle_models,
)

OURS: Final = "arn:${AWS::Partition}:bedrock:eu-west-1:${AWS::AccountId}:"
_MARKED = "\n".join(f"  {mark}" for mark in (HOSTS_BEGIN, HOSTS_END, BEGIN, END)) + "\n"


def door(service: str, **fields: object) -> dict[str, object]:
    """A row of OpenAI's format whose requests are signed for a service of Bedrock."""
    url = f"https://{service}.eu-west-1.api.aws/openai/v1"
    return provider(base_url=url, auth=service, region="eu-west-1", key=None, **fields)


def needed_by(row: dict[str, object], *upstreams: str, **dialect: object) -> Permissions:
    offers = [endpoint("aws", each) | {"dialect": dialect} for each in upstreams]
    return compile_permissions(
        routing(providers={"aws": row}, models={"a/b": model(*offers)}, aliases={}, routes={})
    )


def test_mantle_is_allowed_for_the_models_of_the_file_and_no_other() -> None:
    needed = needed_by(door("bedrock-mantle"), "xai.grok-4.6", "google.gemma-4-31b")
    resource = "arn:${AWS::Partition}:bedrock-mantle:eu-west-1:${AWS::AccountId}:project/*"
    models = ("google.gemma-4-31b", "xai.grok-4.6")
    assert needed.mantle == (MantleGrant(resource=resource, models=models),)
    assert needed.models == needed.bedrock_projects == needed.mantle_counted == ()
    assert {resource, *models} <= set(needed.all_names)
    written = write_permissions(_MARKED, needed)
    assert [line.strip() for line in written.splitlines()[5:-1]] == [
        *("- Effect: Allow", "Action: bedrock-mantle:CreateInference"),
        *("Resource:", f"- !Sub {resource}"),
        *("Condition:", "StringEquals:", "bedrock-mantle:Model:"),
        *("- google.gemma-4-31b", "- xai.grok-4.6"),
    ]
    assert "CountTokens" not in written


def test_mantle_counts_only_where_the_file_states_it() -> None:
    needed = needed_by(door("bedrock-mantle"), "anthropic.claude-x", counts_tokens=True)
    assert needed.mantle_counted == needed.mantle
    assert "bedrock-mantle:CountTokens" in write_permissions(_MARKED, needed)


@pytest.mark.parametrize(
    ("codec", "projects"),
    [
        (
            "openai_responses",
            ("arn:${AWS::Partition}:bedrock:eu-west-1:${AWS::AccountId}:project/default",),
        ),
        ("openai_chat", ()),
    ],
)
def test_a_response_is_created_in_the_default_project_and_never_read_back(
    codec: str, projects: tuple[str, ...]
) -> None:
    needed = needed_by(door("bedrock", codec=codec), "eu.openai.gpt-x")
    assert needed.bedrock_projects == projects
    assert needed.models == (
        "arn:${AWS::Partition}:bedrock:*::foundation-model/openai.gpt-x",
        f"{OURS}inference-profile/eu.openai.gpt-x",
    )
    written = write_permissions(_MARKED, needed)
    assert written.count("Action: bedrock:InvokeModel\n") == len(projects)
    for unused in ("GetInvoke", "CancelInvoke", "DeleteInvoke"):
        assert unused not in written


def test_an_id_that_would_widen_mantles_condition_is_refused() -> None:
    with pytest.raises(NotPermissible):
        needed_by(door("bedrock-mantle"), "*")


def test_mantles_models_are_listed_by_region_and_host() -> None:
    rows = {"aws": door("bedrock-mantle"), "other": door("bedrock")}
    offers = (endpoint("aws", "b.two"), endpoint("aws", "a.one"), endpoint("other", "eu.c.three"))
    found = mantle_models(
        routing(providers=rows, models={"a/b": model(*offers)}, aliases={}, routes={})
    )
    (called,) = found
    assert (called.region, called.host) == ("eu-west-1", "bedrock-mantle.eu-west-1.api.aws")
    assert called.models == ("a.one", "b.two")
