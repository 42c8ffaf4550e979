"""The reader's artefact reads every type of document, with the files that it was shipped with."""

import base64
import json
from typing import Final

import pytest

from tests import documents
from tests.deployment import Deployment
from tollgate.core.files.media_types import DOCX, HTML, PDF, XLSX

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGE: Final = b"<title>T</title><article><h1>Report</h1><p>%b</p></article>" % (b"Words. " * 60)


@pytest.mark.parametrize(
    ("content", "type_", "text"),
    [
        (documents.pdf(["Profits rose."]), PDF, "Profits rose."),
        (documents.word(), DOCX, "All is well."),
        (documents.workbook([("plan", 5)]), XLSX, "plan,5"),
        (PAGE, HTML, "# Report"),
        (b"a,b", "text/csv", "a,b"),
    ],
    ids=["pdf", "docx", "xlsx", "html", "csv"],
)
async def test_the_artefact_reads(
    deployment: Deployment, content: bytes, type_: str, text: str
) -> None:
    event = {
        "media_type": type_,
        "task": {"pictures": "all"},
        "content": base64.b64encode(content).decode(),
        "bytes_max": 5_000_000,
    }
    url = f"{deployment.emulator.invoke_url}/2015-03-31/functions/reader/invocations"
    async with deployment.http.post(url, data=json.dumps(event)) as reply:
        assert (reply.status, reply.headers.get("x-amz-function-error")) == (200, None)
        read = await reply.json(content_type=None)
    assert read["type"] == "batch", read
    assert text in read["pages"][0]["text"]
    assert (read["pages"][0]["picture"] is not None) is (type_ == PDF)
