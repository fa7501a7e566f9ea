"""What Langfuse's client sends, decoded: a stand-in for a Langfuse server."""

import asyncio
import gzip
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.doubles.server import JsonObject, LoopbackServer, eventually

Mode = Literal["ok", "503", "500", "401", "black_hole"]

Tree = tuple[str, str, list["Tree"]]
"""Name, type and children of an observation."""

STATUS = {0: "unset", 1: "ok", 2: "error"}
OBSERVATION = "langfuse.observation."
_serial = itertools.count(1)


@dataclass(frozen=True)
class Span:
    """One span as it arrived; `start` and `end` in seconds since 1970.

    `attributes` hold what was sent; the properties read what Langfuse shows from them.
    """

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    attributes: JsonObject
    status: str
    status_message: str
    start: float
    end: float
    resource: JsonObject

    @property
    def type(self) -> str:
        """agent, generation, tool, retriever, guardrail, span …"""
        return str(self.attributes.get(f"{OBSERVATION}type", "span"))

    @property
    def level(self) -> str:
        """DEFAULT, WARNING or ERROR."""
        return str(self.attributes.get(f"{OBSERVATION}level", "DEFAULT"))

    @property
    def input(self) -> object:
        """The input, decoded from JSON where it is JSON."""
        return decoded(self.attributes.get(f"{OBSERVATION}input"))

    @property
    def output(self) -> object:
        """The output, decoded from JSON where it is JSON."""
        return decoded(self.attributes.get(f"{OBSERVATION}output"))

    @property
    def metadata(self) -> JsonObject:
        """Metadata by key, each value decoded from JSON."""
        prefix = f"{OBSERVATION}metadata."
        return {
            name.removeprefix(prefix): decoded(value)
            for name, value in self.attributes.items()
            if name.startswith(prefix)
        }

    @property
    def tags(self) -> list[str]:
        """The tags of the trace that this is the root of."""
        return list(self.attributes.get("langfuse.trace.tags", []))

    @property
    def model(self) -> object:
        """The model of a generation."""
        return self.attributes.get(f"{OBSERVATION}model.name")

    @property
    def usage(self) -> object:
        """The tokens of a generation by bucket, None if it has none."""
        return decoded(self.attributes.get(f"{OBSERVATION}usage_details"))

    @property
    def cost(self) -> object:
        """The cost of a generation in dollars by bucket, None if it has none."""
        return decoded(self.attributes.get(f"{OBSERVATION}cost_details"))

    @property
    def session(self) -> object:
        """The session it belongs to."""
        return self.attributes.get("session.id")

    @property
    def user(self) -> object:
        """The user it belongs to."""
        return self.attributes.get("user.id")


class OtlpReceiver(LoopbackServer):
    """Takes traces and scores; `LANGFUSE_BASE_URL` is `base_url`.

    Any public and secret key will do. `public_key` is another one for each receiver, because
    Langfuse's client keeps one connection per public key for the life of the process.

    A span that arrives again, because its sender stopped before it was told so, replaces what was
    there, as in Langfuse.

    `mode` says how every request is answered: "ok", an error's status, or never ("black_hole").
    `version` is what its health address tells; see `tests.doubles.langfuse_filters`.
    One that cannot delete scores (`deletes` is False) answers 405.
    """

    def __init__(self, mode: Mode = "ok", version: tuple[int, int] = (4, 59)) -> None:
        super().__init__(
            [
                Route("/api/public/otel/v1/traces", self._traces, methods=["POST"]),
                Route("/api/public/v2/observations", self._list_observations, methods=["GET"]),
                Route("/api/public/traces", self._delete_traces, methods=["DELETE"]),
                Route("/api/public/scores", self._scores, methods=["POST"]),
                Route("/api/public/scores/{score_id}", self._delete_score, methods=["DELETE"]),
                Route("/api/public/ingestion", self._ingestion, methods=["POST"]),
                Route("/api/public/health", self._health),
                Route("/api/public/projects", self._projects),
                Route("/api/public/v2/prompts/{name:path}", self._prompt),
            ]
        )
        self.mode: Mode = mode
        self.version = version
        self.deletes = True
        self.public_key = f"pk-lf-test-{next(_serial)}"
        self.secret_key = "sk-lf-test"
        self.spans: list[Span] = []
        self.requests: list[str] = []
        self._scores_by_id: dict[str, JsonObject] = {}

    @property
    def scores(self) -> list[JsonObject]:
        """The scores; one sent again under its id replaces what was there, as in Langfuse."""
        return list(self._scores_by_id.values())

    @property
    def trace_ids(self) -> list[str]:
        """The traces that spans came for, oldest first."""
        ordered = sorted(self.spans, key=lambda span: span.start)
        return list(dict.fromkeys(span.trace_id for span in ordered))

    def span(self, name: str) -> Span:
        """The only span of that name; AssertionError if there is another number of them."""
        found = [span for span in self.spans if span.name == name]
        if len(found) != 1:
            names = [span.name for span in self.spans]
            raise AssertionError(f"{len(found)} spans are named {name!r}; all names: {names}")
        return found[0]

    def tree(self, trace_id: str | None = None) -> Tree:
        """The observations of a trace below its root, siblings by start; of the only trace if None.

        Raises:
            AssertionError: there is not exactly one such trace, or not exactly one root in it.
        """
        wanted = self.trace_ids if trace_id is None else [trace_id]
        spans = sorted(
            (span for span in self.spans if span.trace_id in wanted), key=lambda span: span.start
        )
        known = {span.span_id for span in spans}
        roots = [span for span in spans if span.parent_id not in known]
        if len(roots) != 1:
            raise AssertionError(f"traces {wanted} have roots {[span.name for span in roots]}")
        return _nested(roots[0], spans)

    async def wait_for_spans(self, n: int, timeout: float = 30) -> list[Span]:  # noqa: ASYNC109
        """All spans once there are at least `n`; AssertionError after `timeout` seconds."""
        await eventually(
            lambda: len(self.spans) >= n,
            seconds=timeout,
            otherwise=lambda: f"{n} span(s) wanted, got {[span.name for span in self.spans]}",
        )
        return list(self.spans)

    async def wait_for_scores(self, n: int, timeout: float = 30) -> list[JsonObject]:  # noqa: ASYNC109
        """All scores once there are at least `n`; AssertionError after `timeout` seconds."""
        await eventually(
            lambda: len(self._scores_by_id) >= n,
            seconds=timeout,
            otherwise=lambda: f"{n} score(s) wanted, got {self.scores}",
        )
        return self.scores

    async def _trouble(self, request: Request) -> Response | None:
        """What `mode` makes of a request; None if it is to be served."""
        self.requests.append(f"{request.method} {request.url.path}")
        if self.mode == "black_hole":
            await asyncio.Event().wait()
        has_keys = request.headers.get("authorization", "").startswith("Basic ")
        is_open = request.url.path == "/api/public/health"
        if self.mode == "401" or not (has_keys or is_open):
            return JSONResponse({"message": "Invalid credentials.", "error": "Unauthorized"}, 401)
        if self.mode != "ok":
            return JSONResponse({"message": "Out of order."}, int(self.mode))
        return None

    async def _traces(self, request: Request) -> Response:
        body = await request.body()
        if trouble := await self._trouble(request):
            return trouble
        known = {(each.trace_id, each.span_id): each for each in self.spans}
        known |= {(each.trace_id, each.span_id): each for each in spans_in(body)}
        self.spans = [*known.values()]
        return Response(b"", media_type="application/x-protobuf")

    async def _list_observations(self, request: Request) -> Response:
        if trouble := await self._trouble(request):
            return trouble
        asked = request.query_params
        before = datetime.fromisoformat(asked.get("toStartTime", "9999-01-01T00:00:00+00:00"))
        start, limit = int(asked.get("cursor", 0)), int(asked["limit"])
        found = [
            as_observation(span)
            for span in self.spans
            if span.user == asked["userId"] and span.start < before.timestamp()
        ]
        cursor = str(start + limit) if start + limit < len(found) else None
        return JSONResponse({"data": found[start : start + limit], "meta": {"cursor": cursor}})

    async def _delete_traces(self, request: Request) -> Response:
        gone = (await request.json())["traceIds"]
        if trouble := await self._trouble(request):
            return trouble
        self.spans = [span for span in self.spans if span.trace_id not in gone]
        scores = self._scores_by_id
        self._scores_by_id = {k: v for k, v in scores.items() if v["traceId"] not in gone}
        return JSONResponse({"message": "Traces deleted successfully"})

    async def _scores(self, request: Request) -> Response:
        body = await request.json()
        if trouble := await self._trouble(request):
            return trouble
        for score in body if isinstance(body, list) else [body]:
            self._scores_by_id[score["id"]] = score
        return JSONResponse({"message": "Accepted"}, 202)

    async def _delete_score(self, request: Request) -> Response:
        if trouble := await self._trouble(request):
            return trouble
        if not self.deletes:
            return Response(status_code=405)
        if self._scores_by_id.pop(request.path_params["score_id"], None) is None:
            return JSONResponse({"message": "Score not found", "error": "NotFound"}, 404)
        return JSONResponse({"message": "Score deletion request received"}, 202)

    async def _ingestion(self, request: Request) -> Response:
        events = (await request.json())["batch"]
        if trouble := await self._trouble(request):
            return trouble
        for event in events:
            if event["type"] == "score-create":
                self._scores_by_id[event["body"]["id"]] = event["body"]
        accepted = [{"id": event["id"], "status": 201} for event in events]
        return JSONResponse({"successes": accepted, "errors": []}, 207)

    async def _health(self, request: Request) -> Response:
        version = ".".join(map(str, (*self.version, 0)))
        healthy = JSONResponse({"status": "OK", "version": version})
        return await self._trouble(request) or healthy

    async def _projects(self, request: Request) -> Response:
        project = {
            "id": "project-1",
            "name": "Sommelier",
            "metadata": {},
            "organization": {"id": "organization-1", "name": "The wine club"},
        }
        return await self._trouble(request) or JSONResponse({"data": [project]})

    async def _prompt(self, request: Request) -> Response:
        missing = {"message": "Prompt not found", "error": "LangfuseNotFoundError"}
        return await self._trouble(request) or JSONResponse(missing, 404)


def as_observation(span: Span) -> JsonObject:
    """A span as the API lists it, with its core fields."""
    return {
        "id": span.span_id,
        "traceId": span.trace_id,
        "parentObservationId": span.parent_id,
        "projectId": "project-1",
        "type": span.type.upper(),
        "startTime": datetime.fromtimestamp(span.start, UTC).isoformat(),
        "endTime": datetime.fromtimestamp(span.end, UTC).isoformat(),
    }


def _nested(span: Span, spans: Sequence[Span]) -> Tree:
    children = [_nested(one, spans) for one in spans if one.parent_id == span.span_id]
    return span.name, span.type, children


def decoded(value: object) -> object:
    """A text as the JSON value it is, anything else as it stands."""
    if not isinstance(value, str):
        return value
    try:
        found: object = json.loads(value)
    except ValueError:
        return value
    return found


def spans_in(body: bytes) -> list[Span]:
    """The spans of a request, compressed or not."""
    if body.startswith(b"\x1f\x8b"):
        body = gzip.decompress(body)
    return [
        span_of(span, attributes_of(batch.resource.attributes))
        for batch in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in batch.scope_spans
        for span in scope.spans
    ]


def span_of(span: trace_pb2.Span, resource: JsonObject) -> Span:
    """A span from its protobuf message."""
    return Span(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex() or None,
        name=span.name,
        attributes=attributes_of(span.attributes),
        status=STATUS[span.status.code],
        status_message=span.status.message,
        start=span.start_time_unix_nano / 1e9,
        end=span.end_time_unix_nano / 1e9,
        resource=resource,
    )


def attributes_of(pairs: Sequence[KeyValue]) -> JsonObject:
    """Attributes by name."""
    return {pair.key: value_of(pair.value) for pair in pairs}


def value_of(value: AnyValue) -> Any:
    """An attribute's value as Python has it."""
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [value_of(one) for one in value.array_value.values]
    if kind == "kvlist_value":
        return attributes_of(value.kvlist_value.values)
    return getattr(value, kind)
