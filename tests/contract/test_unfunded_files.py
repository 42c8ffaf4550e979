"""What a workspace without credit may store: little, on every way in.

Keeps C70.
"""

from pathlib import Path

from msgspec.structs import replace

from tests.contract.test_file_routes import CAPS_OF_TESTS, open_desk
from tests.stores import TESTER, DynamoStores
from tollgate.core.files.stored import FileCap
from tollgate.settings import Settings

CAPS = replace(CAPS_OF_TESTS, unfunded=FileCap(files_max=40, bytes_max=100))


async def test_c70_a_workspace_without_credit_stores_little(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    desk = await open_desk(dynamo, tmp_path, CAPS)
    key = desk.secrets["other inference"]
    small = await desk.upload(b"x" * 60, who="other inference")
    assert small.headers["x-storage-limit-bytes"] == "100"
    announced = {"filename": "a.txt", "purpose": "user_data", "bytes": 60}
    in_parts = {**announced, "mime_type": "text/plain"}
    for refused in (
        await desk.upload(b"x" * 60, who="other inference"),
        await desk.api("POST", "/v1/uploads", content=in_parts, key=key),
    ):
        assert (refused.status, refused.error["code"]) == (402, "storage_quota_exceeded")
        assert "workspace without credit may store 100 bytes" in refused.error["message"]

    await desk.api.home.stores.credits.grant("other", "g1", 1, "test", by=TESTER)
    assert (await desk.api("POST", "/v1/uploads", content=in_parts, key=key)).status == 200
    more = await desk.upload(b"x" * 60, who="other inference")
    assert more.headers["x-storage-limit-bytes"] == "4000"


def test_the_default_cap_without_credit_costs_an_operator_less_than_a_cent_a_month() -> None:
    # https://aws.amazon.com/s3/pricing/ (2026-11): 0.023 USD per GB and month in us-east-1.
    assert Settings().unfunded_file_bytes_max / 1e9 * 0.023 < 0.01
