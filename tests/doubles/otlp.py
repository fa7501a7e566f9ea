"""Imitate a Langfuse server, version 4.16: store what its client sends, and answer its queries."""

import base64
import gzip
import itertools
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from langfuse.api import CreateScoreRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.doubles.server import JsonObject, LoopbackServer, eventually

Mode = Literal["ok", "503", "500", "401", "other", "black_hole"]

Tree = tuple[str, str, list["Tree"]]
"""The name, type and children of an observation."""

VERSION = "4.16.0"
PRICES = {
    "gpt-4o": {"input": 2.5e-6, "input_cached_tokens": 1.25e-6, "output": 10e-6},
    "gpt-4o-mini": {
        "input": 0.15e-6,
        "input_cached_tokens": 0.075e-6,
        "output": 0.6e-6,
    },
    "house-model": {"input": 1.0, "output": 2.0},
}
"""What models cost in this server: US dollars a token. The admin added the last one."""
STATUS = {0: "unset", 1: "ok", 2: "error"}
OBSERVATION = "langfuse.observation."
EXPERIMENT = "langfuse.experiment."
TIME = "2026-01-01T00:00:00.000Z"
TIMES = {"createdAt": TIME, "updatedAt": TIME}
Handler = Callable[[Request], Awaitable[Response]]
_server_numbers = itertools.count(1)


@dataclass(frozen=True)
class Span:
    """A received span, with times in seconds since 1970.

    The properties return what Langfuse shows, from the received `attributes`.
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
        """Return an attribute of the observation, decoded if it is JSON."""
        return decode_if_json(self.attributes.get(f"{OBSERVATION}{name}", default))

    def _with_prefix(self, prefix: str) -> JsonObject:
        return {
            name.removeprefix(prefix): decode_if_json(value)
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
    message = property(lambda self: self._observation("status_message"))
    metadata = property(lambda self: self._with_prefix(f"{OBSERVATION}metadata."))
    experiment = property(lambda self: self._with_prefix(EXPERIMENT))
    tags = property(lambda self: list(self.attributes.get("langfuse.trace.tags", [])))
    session = property(lambda self: self.attributes.get("session.id"))
    user = property(lambda self: self.attributes.get("user.id"))

    @property
    def total_cost(self) -> float | None:
        """Return what the server shows as the cost, None if it shows none.

        A cost that was sent counts as it is. Else the tokens are priced, and where none were sent
        they are counted in the input and the output, also of a request that failed.
        """
        if sent := self.cost:
            if "total" in sent:
                return float(sent["total"])
            return (
                float(sum(sent.values()))
                if sent.keys() <= {"input", "output"}
                else None
            )
        prices = PRICES.get(self.model)
        if prices is None:
            return None
        counted = {
            "input": count_tokens(self.input),
            "output": count_tokens(self.output),
        }
        usage = self.usage or counted
        return sum(count * prices.get(bucket, 0) for bucket, count in usage.items())


@dataclass
class Version:
    """One version of a prompt; a chat prompt is a list of messages."""

    number: int
    prompt: str | list[JsonObject]
    labels: list[str] = field(default_factory=list)


class OtlpReceiver(LoopbackServer):
    """The server, with its traces, scores, prompts and datasets; `LANGFUSE_BASE_URL` is `base_url`.

    It only accepts its own keys. Each server has another `public_key`, because Langfuse keeps one
    client per public key until the process ends. Spans and scores are merged with those of the same
    id. Scores are taken one by one, not in lists, and pass through a queue: one that is deleted
    while it `holds_scores` there stays.

    `mode` is the answer to all requests: "ok", the status of an error, unexpected JSON ("other"),
    or none ("black_hole").
    """

    def __init__(self, mode: Mode = "ok") -> None:
        api = "/api/public"
        super().__init__(
            [
                self._route("POST", f"{api}/otel/v1/traces", self._traces),
                self._route("GET", f"{api}/v2/observations", self._list_observations),
                self._route("DELETE", f"{api}/traces", self._delete_traces),
                self._route("POST", f"{api}/scores", self._store_score),
                self._route("DELETE", f"{api}/scores/{{score_id}}", self._delete_score),
                self._route("GET", f"{api}/projects", self._projects),
                self._route("GET", f"{api}/health", self._health),
                self._route("POST", f"{api}/v2/prompts", self._create_prompt),
                self._route("GET", f"{api}/v2/prompts/{{name:path}}", self._prompt),
                self._route("POST", f"{api}/v2/datasets", self._create_dataset),
                self._route("GET", f"{api}/v2/datasets/{{name:path}}", self._dataset),
                self._route("POST", f"{api}/dataset-items", self._put_item),
                self._route("GET", f"{api}/dataset-items", self._list_items),
            ]
        )
        self.mode: Mode = mode
        self.version = VERSION
        self.holds_scores = False
        self.refused_scores: set[str] = set()
        """The names of scores that are refused."""
        self.public_key = f"pk-lf-test-{next(_server_numbers)}"
        self.secret_key = "sk-lf-test"
        self.spans: list[Span] = []
        self.requests: list[str] = []
        self.prompts: dict[str, list[Version]] = {}
        self.prompt_requests: list[tuple[str, str]] = []
        """The name and the label or version of each requested prompt."""
        self.datasets: dict[str, JsonObject] = {}
        self.items: dict[str, JsonObject] = {}
        self._scores: dict[str, JsonObject] = {}
        self._queued_scores: list[JsonObject] = []

    def _route(self, method: str, path: str, handle: Handler) -> Route:
        async def endpoint(request: Request) -> Response:
            await request.body()
            return await self._error_response(request) or await handle(request)

        return Route(path, endpoint, methods=[method])

    @property
    def scores(self) -> list[JsonObject]:
        return list(self._scores.values())

    @property
    def total_cost(self) -> float:
        return sum(span.total_cost or 0 for span in self.spans)

    def store_queued_scores(self) -> None:
        """Store the scores that wait in the queue."""
        for score in self._queued_scores:
            self._scores[score["id"]] = self._scores.get(score["id"], {}) | score
        self._queued_scores.clear()

    def scores_of(self, trace_id: str) -> dict[str, Any]:
        return {s["name"]: s["value"] for s in self.scores if s["traceId"] == trace_id}

    @property
    def experiments(self) -> dict[str, list[Span]]:
        """Return the root spans of dataset items, by the name of their experiment."""
        roots: dict[str, list[Span]] = {}
        for span in self.spans:
            # Not decoded: an id may consist of digits, and is not a number.
            if (
                span.attributes.get(f"{EXPERIMENT}item.root_observation_id")
                == span.span_id
            ):
                roots.setdefault(str(span.experiment["name"]), []).append(span)
        return roots

    def span(self, name: str) -> Span:
        """Return the only span of that name; fail if there are none or several."""
        spans = [span for span in self.spans if span.name == name]
        names = [span.name for span in self.spans]
        assert len(spans) == 1, (
            f"{len(spans)} spans are named {name!r}; all names: {names}"
        )
        return spans[0]

    def tree(self) -> Tree:
        """Return the tree of the observations, siblings by start; fail unless it has one root."""
        spans = sorted(self.spans, key=lambda span: span.start)
        ids = {span.span_id for span in spans}
        roots = [span for span in spans if span.parent_id not in ids]
        assert len(roots) == 1, f"there are roots {[span.name for span in roots]}"
        return _nested(roots[0], spans)

    async def wait_for_spans(self, n: int) -> None:
        await eventually(
            lambda: len(self.spans) >= n, otherwise=lambda: str(self.spans)
        )

    async def wait_for_scores(self, n: int) -> None:
        await eventually(
            lambda: len(self._scores) >= n, otherwise=lambda: str(self.scores)
        )

    def save_prompt(
        self, name: str, prompt: str | list[JsonObject], label: str = "production"
    ) -> int:
        """Save a new version of a prompt, as an admin does; return its number."""
        versions = self.prompts.setdefault(name, [])
        for version in versions:
            version.labels = [
                old for old in version.labels if old not in {label, "latest"}
            ]
        versions.append(Version(len(versions) + 1, prompt, [label, "latest"]))
        return len(versions)

    def find_prompt(self, name: str, label: str) -> Version | None:
        """Return the version of a prompt with this label or number; None if there is none."""
        versions = self.prompts.get(name, [])
        return next((v for v in versions if label in (*v.labels, str(v.number))), None)

    def add_item(self, dataset: str, item: JsonObject) -> None:
        """Add an item to a dataset, as an admin does; create the dataset if it is missing."""
        self._get_or_create_dataset(dataset)
        self.items[item["id"]] = self._item({**item, "datasetName": dataset})

    async def _error_response(self, request: Request) -> Response | None:
        """Return the response of a `mode` other than "ok", or to wrong keys; otherwise None."""
        self.requests.append(f"{request.method} {request.url.path}")
        if "prompts/" in request.url.path:
            label = request.query_params.get("version") or request.query_params.get(
                "label", ""
            )
            self.prompt_requests.append((request.path_params["name"], label))
        if self.mode == "black_hole":
            while (await request.receive())["type"] != "http.disconnect":
                pass
            return Response()
        if self.mode == "other":
            return JSONResponse({"status": "welcome"})
        keys = base64.b64encode(
            f"{self.public_key}:{self.secret_key}".encode()
        ).decode()
        if (
            self.mode == "401"
            or request.headers.get("authorization") != f"Basic {keys}"
        ):
            return JSONResponse(
                {"message": "Invalid credentials.", "error": "Unauthorized"}, 401
            )
        if self.mode != "ok":
            return JSONResponse(
                {"message": "Out of order."}, int(self.mode), {"Retry-After": "1"}
            )
        return None

    async def _traces(self, request: Request) -> Response:
        spans = {(span.trace_id, span.span_id): span for span in self.spans}
        for span in parse_spans(await request.body()):
            known = spans.get((span.trace_id, span.span_id), span)
            merged = replace(span, attributes=known.attributes | span.attributes)
            spans[span.trace_id, span.span_id] = merged
        self.spans = [*spans.values()]
        return Response(b"", media_type="application/x-protobuf")

    async def _list_observations(self, request: Request) -> Response:
        params = request.query_params
        before = datetime.fromisoformat(
            params.get("toStartTime", "9999-01-01T00:00:00+00:00")
        )
        # As in Langfuse, a deletion between two requests does not shift the next page.
        after = float(params.get("cursor", 0))
        user_spans = [span for span in self.spans if span.user == params["userId"]]
        spans = [span for span in user_spans if after < span.start < before.timestamp()]
        spans.sort(key=lambda span: span.start)
        page = spans[: int(params["limit"])]
        cursor = repr(page[-1].start) if len(spans) > len(page) else None
        return JSONResponse(
            {"data": [*map(to_observation, page)], "meta": {"cursor": cursor}}
        )

    async def _delete_traces(self, request: Request) -> Response:
        deleted = (await request.json())["traceIds"]
        self.spans = [span for span in self.spans if span.trace_id not in deleted]
        self._scores = {
            k: v for k, v in self._scores.items() if v["traceId"] not in deleted
        }
        return JSONResponse({"message": "Traces deleted successfully"})

    async def _store_score(self, request: Request) -> Response:
        score = await request.json()
        try:
            CreateScoreRequest.model_validate(score)
        except ValidationError:  # a list of scores, too
            issues = [
                {"code": "invalid_type", "path": [], "message": "expected a score"}
            ]
            return JSONResponse(
                {"message": "Invalid request data", "error": issues}, 400
            )
        if score["name"] in self.refused_scores:
            return JSONResponse({"message": f"{score['name']} is no score here"}, 400)
        self._queued_scores.append(score)
        if not self.holds_scores:
            self.store_queued_scores()
        return JSONResponse({"id": score["id"]})

    async def _health(self, request: Request) -> Response:
        return JSONResponse({"status": "OK", "version": self.version})

    async def _delete_score(self, request: Request) -> Response:
        self._scores.pop(request.path_params["score_id"], None)
        return JSONResponse({"message": "Score deletion request received"}, 202)

    async def _projects(self, request: Request) -> Response:
        organization = {"id": "organization-1", "name": "The wine club"}
        project = {"id": "project-1", "name": "Sommelier", "metadata": {}}
        return JSONResponse({"data": [project | {"organization": organization}]})

    async def _prompt(self, request: Request) -> Response:
        name, params = request.path_params["name"], request.query_params
        version = self.find_prompt(
            name, params.get("version") or params.get("label", "production")
        )
        return (
            _not_found("Prompt")
            if version is None
            else JSONResponse(prompt_to_json(name, version))
        )

    async def _create_prompt(self, request: Request) -> Response:
        body: JsonObject = await request.json()
        number = self.save_prompt(body["name"], body["prompt"], *body["labels"])
        return JSONResponse(
            prompt_to_json(body["name"], self.prompts[body["name"]][number - 1]), 201
        )

    def _get_or_create_dataset(self, name: str) -> JsonObject:
        fields = {
            "name": name,
            "description": None,
            "metadata": None,
            "projectId": "project-1",
        }
        new_dataset = {"id": f"dataset-{len(self.datasets) + 1}", **fields, **TIMES}
        return self.datasets.setdefault(name, new_dataset)

    def _item(self, body: JsonObject) -> JsonObject:
        return {
            **{
                "input": None,
                "expectedOutput": None,
                "metadata": None,
                "status": "ACTIVE",
            },
            **{
                "mediaReferences": [],
                "datasetId": self.datasets[body["datasetName"]]["id"],
            },
            **{name: value for name, value in body.items() if value is not None},
            **TIMES,
        }

    async def _create_dataset(self, request: Request) -> Response:
        return JSONResponse(self._get_or_create_dataset((await request.json())["name"]))

    async def _dataset(self, request: Request) -> Response:
        dataset = self.datasets.get(request.path_params["name"])
        return JSONResponse(dataset) if dataset else _not_found("Dataset")

    async def _put_item(self, request: Request) -> Response:
        body = await request.json()
        self.items[body["id"]] = self._item(body)
        return JSONResponse(self.items[body["id"]])

    async def _list_items(self, request: Request) -> Response:
        name, page = (
            request.query_params["datasetName"],
            int(request.query_params["page"]),
        )
        items = [item for item in self.items.values() if item["datasetName"] == name]
        meta = {"page": page, "limit": 50, "totalItems": len(items), "totalPages": 1}
        return JSONResponse({"data": items, "meta": meta})


def _not_found(kind: str) -> Response:
    missing = {"message": f"{kind} not found", "error": "LangfuseNotFoundError"}
    return JSONResponse(missing, 404)


def to_observation(span: Span) -> JsonObject:
    return {
        "id": span.span_id,
        "traceId": span.trace_id,
        "parentObservationId": span.parent_id,
        "projectId": "project-1",
        "type": span.type.upper(),
        "startTime": datetime.fromtimestamp(span.start, UTC).isoformat(),
        "endTime": datetime.fromtimestamp(span.end, UTC).isoformat(),
    }


def prompt_to_json(name: str, version: Version) -> JsonObject:
    return {
        **{"config": {}, "tags": []},
        "name": name,
        "version": version.number,
        "type": "text" if isinstance(version.prompt, str) else "chat",
        "prompt": version.prompt,
        "labels": version.labels,
        **{"commitMessage": None, "resolutionGraph": None},
    }


def count_tokens(content: object) -> int:
    return 0 if content is None else len(json.dumps(content)) // 4


def _nested(span: Span, spans: Sequence[Span]) -> Tree:
    children = [
        _nested(child, spans) for child in spans if child.parent_id == span.span_id
    ]
    return span.name, span.type, children


def decode_if_json(value: object) -> object:
    """Return the value of a JSON text; return anything else unchanged."""
    if not isinstance(value, str):
        return value
    try:
        decoded: object = json.loads(value)
    except ValueError:
        return value
    return decoded


def parse_spans(body: bytes) -> list[Span]:
    if body.startswith(b"\x1f\x8b"):
        body = gzip.decompress(body)
    return [
        to_span(span)
        for batch in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in batch.scope_spans
        for span in scope.spans
    ]


def to_span(span: trace_pb2.Span) -> Span:
    return Span(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex() or None,
        name=span.name,
        attributes=to_attributes(span.attributes),
        status=STATUS[span.status.code],
        start=span.start_time_unix_nano / 1e9,
        end=span.end_time_unix_nano / 1e9,
    )


def to_attributes(pairs: Sequence[KeyValue]) -> JsonObject:
    return {pair.key: to_value(pair.value) for pair in pairs}


def to_value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [to_value(item) for item in value.array_value.values]
    return None if kind is None else getattr(value, kind)
