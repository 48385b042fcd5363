"""Serves reports of drills and of link logs to the console, each without access to the console.

A report is a page with scripts of its own, and its file may have been made elsewhere. So it is served in a sandbox: a
page without an origin, which has no session, and can ask nothing, neither the observer nor anybody else.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from pathlib import Path
from typing import Final
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mesh.watch.answers import refuse_unless, requester_of
from mesh.watch.kept_reports import PAGE, kept_reports, page_of, report_folders

REPORT_POLICY: Final = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
"""The page itself has a policy that names its scripts by their hashes; both policies hold."""
COMMANDS: Final = (
    ("Rehearse failures: kill nodes of a copy of the mesh, and see what clients notice", ("drill", "drill.yml")),
    ("Report on the link logs", ("report", "linklogs", "--out", "report")),
)


class ReportPages:
    """The reports beside the topology file in ``folder``; None: the topology has no file, and so no reports."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def routes(self) -> list[Route]:
        return [
            Route("/console/reports", self._list),
            Route("/console/reports/{kind}/{name}", self._page),
        ]

    async def _list(self, request: Request) -> Response:
        refuse_unless(requester_of(request).operator.views_all, "reports need `view` of #")
        reports, left_out = await asyncio.to_thread(kept_reports, self._folder) if self._folder else ([], 0)
        told = {
            "reports": [
                {**each.to_map(), "href": f"/console/reports/{quote(each.kind)}/{quote(each.name, safe='')}"}
                for each in reports
            ],
            "left_out": left_out,
            "folders": [str(root) for _, root in report_folders(self._folder)] if self._folder else [],
            "commands": [
                {"meaning": meaning, "command": shlex.join(["amqpmesh", *command])} for meaning, command in COMMANDS
            ],
        }
        return Response(json.dumps(told), media_type="application/json")

    async def _page(self, request: Request) -> Response:
        refuse_unless(requester_of(request).operator.views_all, "reports need `view` of #")
        kind, name = request.path_params["kind"], request.path_params["name"]
        content = await asyncio.to_thread(page_of, self._folder, kind, name) if self._folder else None
        if content is None:
            raise HTTPException(404, f"there is no report {name[:80]!r} here with a file {PAGE}")
        return Response(content, headers={"content-security-policy": REPORT_POLICY}, media_type="text/html")
