"""Routes for a workspace's monthly statements, as JSON, CSV, PDF or a printable page."""

from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Header, Query
from starlette.responses import HTMLResponse, Response

from tollgate.core.files.media_types import ASCII_PDF
from tollgate.core.money.statement import read_month
from tollgate.web.admission import Caller, admitted_router
from tollgate.web.http.csv_reply import csv_reply
from tollgate.web.money.statement_page import STATEMENT_POLICY, statement_page
from tollgate.web.money.statement_pdf import statement_pdf
from tollgate.web.money.statement_shapes import (
    STATEMENT_COLUMNS,
    StatementObject,
    StatementReply,
    statement_rows,
)
from tollgate.web.services import Services

StatementFormat = Literal["json", "csv", "html", "pdf"]
_OR_TEXT: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "content": {
            "text/csv": {"schema": {"type": "string"}},
            "text/html": {"schema": {"type": "string"}},
            ASCII_PDF: {"schema": {"type": "string"}},
        }
    }
}


async def statement_format(
    format_: Annotated[StatementFormat | None, Query(alias="format")] = None,
    accept: Annotated[str | None, Header()] = None,
) -> StatementFormat:
    """Return the requested format, taken from the query's `format` or else from the start of
    `Accept`.
    """
    if format_ is not None:
        return format_
    wanted = accept or ""
    if wanted.startswith("application/pdf"):
        return "pdf"
    if wanted.startswith("text/html"):
        return "html"
    return "csv" if wanted.startswith("text/csv") else "json"


_Month = Annotated[
    str | None, Query(description="UTC month, such as 2026-11; by default the current month")
]
_Wanted = Annotated[StatementFormat, Depends(statement_format)]


def statement_routes(services: Services) -> APIRouter:
    """Return the routes of statements."""
    router = admitted_router(services, prefix="/v1", tag="credits")

    async def reply(
        workspace_id: str, month: str | None, format_: StatementFormat
    ) -> StatementReply | Response:
        now_s = services.now_s()
        name = month or f"{datetime.fromtimestamp(now_s, UTC):%Y-%m}"
        found = await services.statements.statement(workspace_id, read_month(name, now_s))
        match format_:
            case "json":
                return StatementReply(data=StatementObject.of(found))
            case "csv":
                return csv_reply(STATEMENT_COLUMNS, statement_rows(found))
            case "pdf":
                return Response(
                    statement_pdf(found),
                    headers={"content-type": ASCII_PDF, "cache-control": "private, no-store"},
                )
            case "html":
                return HTMLResponse(
                    statement_page(found),
                    headers={
                        "content-security-policy": STATEMENT_POLICY,
                        "x-content-type-options": "nosniff",
                        "cache-control": "private, no-store",
                    },
                )

    @router.get("/statement", response_model=StatementReply, responses=_OR_TEXT)
    async def show_statement(
        principal: Caller, format_: _Wanted, month: _Month = None
    ) -> StatementReply | Response:
        """Show the statement for a month: balances, entries, and usage net of refunds.

        The statement agrees with the ledger to the nano-dollar; its status says whether it is
        final.
        """
        return await reply(principal.workspace_id, month, format_)

    @router.get(
        "/workspaces/{workspace_id}/statement", response_model=StatementReply, responses=_OR_TEXT
    )
    async def show_workspace_statement(
        workspace_id: str, format_: _Wanted, month: _Month = None
    ) -> StatementReply | Response:
        """Show a workspace's statement for one month."""
        await services.find_workspace(workspace_id)
        return await reply(workspace_id, month, format_)

    return router
