"""The permissions of Bedrock's batches: exact models, and none without a price.

Keeps C83.
"""

import pytest
from click import ClickException

from tests.unit.routing.catalogs import endpoint, model, routing
from tests.unit.routing.file.test_permissions import BEDROCK
from tollgate.cli.routing.permissions import (
    BATCHES_BEGIN,
    BATCHES_END,
    BEGIN,
    END,
    HOSTS_BEGIN,
    HOSTS_END,
    OUTPUT_BEGIN,
    OUTPUT_END,
    ROLE_BEGIN,
    ROLE_END,
    VARIABLES_BEGIN,
    VARIABLES_END,
    write_permissions,
)
from tollgate.routing.file.permissions import Permissions, compile_permissions

_MARKED = "\n".join(f"  {mark}" for mark in (HOSTS_BEGIN, HOSTS_END, BEGIN, END)) + "\n"
_BATCH_MARKS = "".join(
    f"  {mark}\n"
    for mark in (
        *(BATCHES_BEGIN, BATCHES_END, ROLE_BEGIN, ROLE_END),
        *(VARIABLES_BEGIN, VARIABLES_END, OUTPUT_BEGIN, OUTPUT_END),
    )
)


def batching(*upstreams: str, models: tuple[str, ...] = ("*",), **row: object) -> Permissions:
    """Permissions of a file in which Bedrock runs lines of some models in batches."""
    terms = {"form": "bedrock", "percent": 50, "models": models}
    terms |= {"source": "made up", "checked": "2026-11-21"}
    return compile_permissions(
        routing(
            providers={"aws": {**BEDROCK, "batch": terms, **row}},
            models={
                f"a/{number}": model(endpoint("aws", upstream))
                for number, upstream in enumerate(upstreams)
            },
            aliases={},
            routes={},
        )
    )


def test_c83_jobs_may_be_created_for_exactly_the_models_that_run_in_batches() -> None:
    found = batching(
        "amazon.nova-x", "eu.amazon.nova-y", "amazon.nova-z", models=("amazon.nova-x",)
    )
    nova_x = "arn:${AWS::Partition}:bedrock:eu-west-1::foundation-model/amazon.nova-x"
    jobs = "arn:${AWS::Partition}:bedrock:eu-west-1:${AWS::AccountId}:model-invocation-job/*"
    assert (found.batch_models, found.batch_profiles) == ((nova_x,), ())
    assert found.batch_jobs == (jobs,)
    assert jobs in found.all_names
    written = write_permissions(_MARKED + _BATCH_MARKS, found)
    assert f"- !Sub {nova_x}\n      - !Sub {jobs}\n" in written
    assert "BedrockBatchRole:" in written
    assert written.count("TOLLGATE_BEDROCK_BATCH_ROLE") == 1


def test_c83_bedrocks_role_invokes_the_models_of_a_profile() -> None:
    found = batching("eu.amazon.nova-y")
    assert found.batch_models == found.batch_profiles == found.models


def test_c83_a_file_without_batches_of_bedrock_needs_none_of_their_permissions() -> None:
    for found in (batching("amazon.nova-x", batch=None), batching("amazon.x", models=("other",))):
        assert (found.batch_models, found.batch_profiles, found.batch_jobs) == ((), (), ())
        written = write_permissions(_MARKED + _BATCH_MARKS, found)
        for word in ("ModelInvocationJob", "PassRole", "BedrockBatchRole", "BATCH_ROLE"):
            assert word not in written
        # A template of an earlier version has no marks for them.
        assert write_permissions(_MARKED, found)
    with pytest.raises(ClickException):
        write_permissions(_MARKED, batching("amazon.nova-x"))
