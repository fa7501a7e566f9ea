"""A stand-in for a Langfuse server: what its client sends, decoded, and what it asks for."""

import base64
import gzip
import itertools
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.doubles.server import JsonObject, LoopbackServer, eventually

Mode = Literal["ok", "503", "500", "401", "other", "black_hole"]

Tree = tuple[str, str, list["Tree"]]
"""Name, type and children of an observation."""

STATUS = {0: "unset", 1: "ok", 2: "error"}
OBSERVATION = "langfuse.observation."
EXPERIMENT = "langfuse.experiment."
TIME = "2026-01-01T00:00:00.000Z"
TIMES = {"createdAt": TIME, "updatedAt": TIME}
Handler = Callable[[Request], Awaitable[Response]]
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
    start: float
    end: float

    def _observation(self, name: str, default: object = None) -> object:
        """An attribute of the observation, decoded from JSON where it is JSON."""
        return decoded(self.attributes.get(f"{OBSERVATION}{name}", default))

    def _below(self, prefix: str) -> JsonObject:
        return {
            name.removeprefix(prefix): decoded(value)
            for name, value in self.attributes.items()
            if name.startswith(prefix)
        }

    type = property(lambda self: self._observation("type", "span"))
    level = property(lambda self: self._observation("level", "DEFAULT"))
    input = property(lambda self: self._observation("input"))
    output = property(lambda self: self._observation("output"))
    model = property(lambda self: self._observation("model.name"))
    usage = property(lambda self: self._observation("usage_details"))
    cost = property(lambda self: self._observation("cost_details"))
    metadata = property(lambda self: self._below(f"{OBSERVATION}metadata."))
    experiment = property(lambda self: self._below(EXPERIMENT))
    tags = property(lambda self: list(self.attributes.get("langfuse.trace.tags", [])))
    session = property(lambda self: self.attributes.get("session.id"))
    user = property(lambda self: self.attributes.get("user.id"))


@dataclass
class Version:
    """One version of a prompt; a chat prompt is a list of messages."""

    number: int
    prompt: str | list[JsonObject]
    labels: list[str] = field(default_factory=list)


class OtlpReceiver(LoopbackServer):
    """Traces, scores, prompts by name, datasets by name and their items by id.

    `LANGFUSE_BASE_URL` is `base_url`; only its own keys may come in. `public_key` is another one
    for each server, because Langfuse's client is one per public key for the life of the process.

    `mode` says how every request is answered: "ok", an error's status, other JSON ("other"),
    or never ("black_hole"). One that cannot delete scores (`deletes` is False) answers
    405. `asked` are the names and the labels, or versions, of the prompts that were asked for. What
    arrives again replaces what was there.
    """

    def __init__(self, mode: Mode = "ok") -> None:
        api = "/api/public"
        super().__init__(
            [
                self._route("POST", f"{api}/otel/v1/traces", self._traces),
                self._route("GET", f"{api}/v2/observations", self._list_observations),
                self._route("DELETE", f"{api}/traces", self._delete_traces),
                self._route("POST", f"{api}/scores", self._take_scores),
                self._route("DELETE", f"{api}/scores/{{score_id}}", self._delete_score),
                self._route("GET", f"{api}/projects", self._projects),
                self._route("POST", f"{api}/v2/prompts", self._create_prompt),
                self._route("GET", f"{api}/v2/prompts/{{name:path}}", self._prompt),
                self._route("POST", f"{api}/v2/datasets", self._create_dataset),
                self._route("GET", f"{api}/v2/datasets/{{name:path}}", self._dataset),
                self._route("POST", f"{api}/dataset-items", self._put_item),
                self._route("GET", f"{api}/dataset-items", self._list_items),
            ]
        )
        self.mode: Mode = mode
        self.deletes = True
        self.public_key = f"pk-lf-test-{next(_serial)}"
        self.secret_key = "sk-lf-test"
        self.spans: list[Span] = []
        self.requests: list[str] = []
        self.prompts: dict[str, list[Version]] = {}
        self.asked: list[tuple[str, str]] = []
        self.datasets: dict[str, JsonObject] = {}
        self.items: dict[str, JsonObject] = {}
        self._scores: dict[str, JsonObject] = {}

    def _route(self, method: str, path: str, handle: Handler) -> Route:
        async def served(request: Request) -> Response:
            await request.body()
            return await self._trouble(request) or await handle(request)

        return Route(path, served, methods=[method])

    @property
    def scores(self) -> list[JsonObject]:
        return list(self._scores.values())

    def scores_of(self, trace_id: str) -> dict[str, Any]:
        return {one["name"]: one["value"] for one in self.scores if one["traceId"] == trace_id}

    @property
    def linked(self) -> dict[str, list[Span]]:
        """The root spans of items by the name of their experiment."""
        roots: dict[str, list[Span]] = {}
        for span in self.spans:
            # As it stands: an id of nothing but digits is no number.
            if span.attributes.get(f"{EXPERIMENT}item.root_observation_id") == span.span_id:
                roots.setdefault(str(span.experiment["name"]), []).append(span)
        return roots

    def span(self, name: str) -> Span:
        """The only span of that name; AssertionError if there is another number of them."""
        found = [span for span in self.spans if span.name == name]
        names = [span.name for span in self.spans]
        assert len(found) == 1, f"{len(found)} spans are named {name!r}; all names: {names}"
        return found[0]

    def tree(self) -> Tree:
        """The observations of the only trace below its only root, siblings by start."""
        spans = sorted(self.spans, key=lambda span: span.start)
        known = {span.span_id for span in spans}
        roots = [span for span in spans if span.parent_id not in known]
        assert len(roots) == 1, f"there are roots {[span.name for span in roots]}"
        return _nested(roots[0], spans)

    async def wait_for_spans(self, n: int) -> None:
        await eventually(lambda: len(self.spans) >= n, otherwise=lambda: str(self.spans))

    async def wait_for_scores(self, n: int) -> None:
        await eventually(lambda: len(self._scores) >= n, otherwise=lambda: str(self.scores))

    def put(self, name: str, prompt: str | list[JsonObject], label: str = "production") -> int:
        """Save a new version of a prompt, as an admin does; return its number."""
        versions = self.prompts.setdefault(name, [])
        for version in versions:
            version.labels = [old for old in version.labels if old not in {label, "latest"}]
        versions.append(Version(len(versions) + 1, prompt, [label, "latest"]))
        return len(versions)

    def labelled(self, name: str, label: str) -> Version | None:
        versions = self.prompts.get(name, [])
        return next((one for one in versions if label in (*one.labels, str(one.number))), None)

    def add(self, dataset: str, item: JsonObject) -> None:
        """Add an item that an admin made, in a dataset that is made with it."""
        self._made(dataset)
        self.items[item["id"]] = self._item({**item, "datasetName": dataset})

    async def _trouble(self, request: Request) -> Response | None:
        """What `mode` makes of a request; None if it is to be served."""
        self.requests.append(f"{request.method} {request.url.path}")
        if "prompts/" in request.url.path:
            label = request.query_params.get("version") or request.query_params.get("label", "")
            self.asked.append((request.path_params["name"], label))
        if self.mode == "black_hole":
            while (await request.receive())["type"] != "http.disconnect":
                pass
            return Response()
        if self.mode == "other":
            return JSONResponse({"status": "welcome"})
        keys = base64.b64encode(f"{self.public_key}:{self.secret_key}".encode()).decode()
        if self.mode == "401" or request.headers.get("authorization") != f"Basic {keys}":
            return JSONResponse({"message": "Invalid credentials.", "error": "Unauthorized"}, 401)
        if self.mode != "ok":
            return JSONResponse({"message": "Out of order."}, int(self.mode), {"Retry-After": "1"})
        return None

    async def _traces(self, request: Request) -> Response:
        sent = spans_in(await request.body())
        known = {(span.trace_id, span.span_id): span for span in [*self.spans, *sent]}
        self.spans = [*known.values()]
        return Response(b"", media_type="application/x-protobuf")

    async def _list_observations(self, request: Request) -> Response:
        asked = request.query_params
        before = datetime.fromisoformat(asked.get("toStartTime", "9999-01-01T00:00:00+00:00"))
        # As in Langfuse, traces that are deleted meanwhile do not move a page.
        after = float(asked.get("cursor", 0))
        theirs = [span for span in self.spans if span.user == asked["userId"]]
        found = [span for span in theirs if after < span.start < before.timestamp()]
        found.sort(key=lambda span: span.start)
        page = found[: int(asked["limit"])]
        cursor = repr(page[-1].start) if len(found) > len(page) else None
        return JSONResponse({"data": [*map(as_observation, page)], "meta": {"cursor": cursor}})

    async def _delete_traces(self, request: Request) -> Response:
        gone = (await request.json())["traceIds"]
        self.spans = [span for span in self.spans if span.trace_id not in gone]
        self._scores = {k: v for k, v in self._scores.items() if v["traceId"] not in gone}
        return JSONResponse({"message": "Traces deleted successfully"})

    async def _take_scores(self, request: Request) -> Response:
        self._scores |= {score["id"]: score for score in await request.json()}
        return JSONResponse({"message": "Accepted"}, 202)

    async def _delete_score(self, request: Request) -> Response:
        if not self.deletes:
            return Response(status_code=405)
        if self._scores.pop(request.path_params["score_id"], None) is None:
            return _not_found("Score")
        return JSONResponse({"message": "Score deletion request received"}, 202)

    async def _projects(self, request: Request) -> Response:
        organization = {"id": "organization-1", "name": "The wine club"}
        project = {"id": "project-1", "name": "Sommelier", "metadata": {}}
        return JSONResponse({"data": [project | {"organization": organization}]})

    async def _prompt(self, request: Request) -> Response:
        name, asked = request.path_params["name"], request.query_params
        version = self.labelled(name, asked.get("version") or asked.get("label", "production"))
        return _not_found("Prompt") if version is None else JSONResponse(as_json(name, version))

    async def _create_prompt(self, request: Request) -> Response:
        body: JsonObject = await request.json()
        number = self.put(body["name"], body["prompt"], *body["labels"])
        return JSONResponse(as_json(body["name"], self.prompts[body["name"]][number - 1]), 201)

    def _made(self, name: str) -> JsonObject:
        known = {"name": name, "description": None, "metadata": None, "projectId": "project-1"}
        new = {"id": f"dataset-{len(self.datasets) + 1}", **known, **TIMES}
        return self.datasets.setdefault(name, new)

    def _item(self, sent: JsonObject) -> JsonObject:
        return {
            **{"input": None, "expectedOutput": None, "metadata": None, "status": "ACTIVE"},
            **{"mediaReferences": [], "datasetId": self.datasets[sent["datasetName"]]["id"]},
            **{name: value for name, value in sent.items() if value is not None},
            **TIMES,
        }

    async def _create_dataset(self, request: Request) -> Response:
        return JSONResponse(self._made((await request.json())["name"]))

    async def _dataset(self, request: Request) -> Response:
        found = self.datasets.get(request.path_params["name"])
        return JSONResponse(found) if found else _not_found("Dataset")

    async def _put_item(self, request: Request) -> Response:
        sent = await request.json()
        self.items[sent["id"]] = self._item(sent)
        return JSONResponse(self.items[sent["id"]])

    async def _list_items(self, request: Request) -> Response:
        name, page = request.query_params["datasetName"], int(request.query_params["page"])
        found = [item for item in self.items.values() if item["datasetName"] == name]
        meta = {"page": page, "limit": 50, "totalItems": len(found), "totalPages": 1}
        return JSONResponse({"data": found, "meta": meta})


def _not_found(what: str) -> Response:
    missing = {"message": f"{what} not found", "error": "LangfuseNotFoundError"}
    return JSONResponse(missing, 404)


def as_observation(span: Span) -> JsonObject:
    return {
        "id": span.span_id,
        "traceId": span.trace_id,
        "parentObservationId": span.parent_id,
        "projectId": "project-1",
        "type": span.type.upper(),
        "startTime": datetime.fromtimestamp(span.start, UTC).isoformat(),
        "endTime": datetime.fromtimestamp(span.end, UTC).isoformat(),
    }


def as_json(name: str, version: Version) -> JsonObject:
    return {
        **{"id": f"{name}-{version.number}", "projectId": "project-1", "createdBy": "API"},
        **{"isActive": None, "config": {}, "tags": []},
        **TIMES,
        "name": name,
        "version": version.number,
        "type": "text" if isinstance(version.prompt, str) else "chat",
        "prompt": version.prompt,
        "labels": version.labels,
        **{"commitMessage": None, "resolutionGraph": None},
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
    if body.startswith(b"\x1f\x8b"):
        body = gzip.decompress(body)
    return [
        span_of(span)
        for batch in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in batch.scope_spans
        for span in scope.spans
    ]


def span_of(span: trace_pb2.Span) -> Span:
    return Span(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex() or None,
        name=span.name,
        attributes=attributes_of(span.attributes),
        status=STATUS[span.status.code],
        start=span.start_time_unix_nano / 1e9,
        end=span.end_time_unix_nano / 1e9,
    )


def attributes_of(pairs: Sequence[KeyValue]) -> JsonObject:
    return {pair.key: value_of(pair.value) for pair in pairs}


def value_of(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [value_of(one) for one in value.array_value.values]
    return None if kind is None else getattr(value, kind)
