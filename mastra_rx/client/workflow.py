"""A workflow on a server."""

from __future__ import annotations

import uuid
from typing import Any, cast
from urllib.parse import quote

from ..view import View
from ..workflow_output import WorkflowRunOutput
from .agent import wire_options
from .calls import call_view
from .http import Call, Http
from .streams import Position, observed, read, source


class Workflow:
    """A workflow by its id. Nothing is sent before a view is subscribed, awaited or iterated."""

    def __init__(self, http: Http, workflow_id: str) -> None:
        self._http = http
        self.id = workflow_id
        self._path = f"/api/workflows/{quote(workflow_id, safe='')}"

    def __repr__(self) -> str:
        return f"<Workflow {self.id} of {self._http.base_url}>"

    def details(self) -> View[dict[str, Any]]:
        """Steps and schemas, as the server tells them."""
        return call_view(self._http, Call(self._path, method="GET"), f"workflow({self.id!r}).details()")

    def create_run(self, run_id: str | None = None) -> View[str]:
        """Make a run, to be started later; its id."""
        query = {} if run_id is None else {"runId": run_id}
        return call_view(
            self._http,
            Call(f"{self._path}/create-run", query=query),
            f"workflow({self.id!r}).create_run()",
            lambda answer: cast("str", answer["runId"]),
        )

    def start(
        self, input_data: Any = None, *, run_id: str | None = None, history: int | None = None, **options: Any
    ) -> WorkflowRunOutput:
        """Run the workflow with `input_data`, under a new run id or a given one.

        Options are the server's, in snake_case: `initial_state`, `request_context`, `tracing_options`, ...
        """
        return self.stream(input_data, run_id=run_id or str(uuid.uuid4()), history=history, **options)

    def stream(
        self, input_data: Any = None, *, run_id: str, history: int | None = None, **options: Any
    ) -> WorkflowRunOutput:
        """Start a run that `create_run` made."""
        body = {"inputData": input_data, **wire_options(options)}
        return self._output("stream", run_id, body, history)

    def resume_stream(
        self,
        resume_data: Any = None,
        *,
        run_id: str,
        step: str | list[str] | None = None,
        history: int | None = None,
        **options: Any,
    ) -> WorkflowRunOutput:
        """Give a suspended run what it waits for, and see it go on. `step` names the suspended step, if several are."""
        body = {"resumeData": resume_data, **wire_options(options)}
        if step is not None:
            body["step"] = step
        return self._output("resume-stream", run_id, body, history)

    def observe(self, run_id: str, offset: int = 0, *, history: int | None = None) -> WorkflowRunOutput:
        """See a run, from chunk `offset` on, also a second time or after its end.

        Where the connection drops it is taken up again, each chunk once.
        """

        def call_at(position: int) -> Call:
            return Call(f"{self._path}/observe", query={"runId": run_id, "offset": position}, repeatable=True)

        Position(offset)  # refuses a bad offset here and now
        return WorkflowRunOutput(source(lambda: observed(self._http, call_at, Position(offset))), history=history)

    def _output(self, verb: str, run_id: str, body: dict[str, Any], history: int | None) -> WorkflowRunOutput:
        call = Call(f"{self._path}/{verb}", body, query={"runId": run_id})
        return WorkflowRunOutput(source(lambda: read(self._http, call)), history=history)
