"""A stand-in for a Langfuse server: what its client sends, decoded, and what it asks for."""

import base64
import gzip
import itertools
import json
import math
from collections.abc import Mapping, Sequence
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

Mode = Literal["ok", "503", "500", "401", "html", "other", "black_hole"]

Tree = tuple[str, str, list["Tree"]]
"""Name, type and children of an observation."""

STATUS = {0: "unset", 1: "ok", 2: "error"}
OBSERVATION = "langfuse.observation."
EXPERIMENT = "langfuse.experiment."
TIME = "2026-01-01T00:00:00.000Z"
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

    def _observation(self, name: str) -> object:
        return self.attributes.get(f"{OBSERVATION}{name}")

    @property
    def type(self) -> str:
        """agent, generation, tool, retriever, guardrail, span …"""
        return str(self._observation("type") or "span")

    @property
    def level(self) -> str:
        """DEFAULT, WARNING or ERROR."""
        return str(self._observation("level") or "DEFAULT")

    @property
    def input(self) -> object:
        """The input, decoded from JSON where it is JSON."""
        return decoded(self._observation("input"))

    @property
    def output(self) -> object:
        """The output, decoded from JSON where it is JSON."""
        return decoded(self._observation("output"))

    @property
    def metadata(self) -> JsonObject:
        """Metadata by key, each value decoded from JSON."""
        return self._below(f"{OBSERVATION}metadata.")

    @property
    def experiment(self) -> Mapping[str, object]:
        """What ties the span to an experiment, each value decoded from JSON."""
        return self._below(EXPERIMENT)

    def _below(self, prefix: str) -> JsonObject:
        return {
            name.removeprefix(prefix): decoded(value)
            for name, value in self.attributes.items()
            if name.startswith(prefix)
        }

    @property
    def tags(self) -> list[str]:
        """The tags of the trace."""
        return list(self.attributes.get("langfuse.trace.tags", []))

    @property
    def model(self) -> object:
        """The model of a generation."""
        return self._observation("model.name")

    @property
    def usage(self) -> object:
        """The tokens of a generation by bucket, None if it has none."""
        return decoded(self._observation("usage_details"))

    @property
    def cost(self) -> object:
        """The cost of a generation in dollars by bucket, None if it has none."""
        return decoded(self._observation("cost_details"))

    @property
    def session(self) -> object:
        """The session it belongs to."""
        return self.attributes.get("session.id")

    @property
    def user(self) -> object:
        """The user it belongs to."""
        return self.attributes.get("user.id")


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

    `mode` says how every request is answered: "ok", an error's status, a page ("html"), other JSON
    ("other"), or never ("black_hole"). `version` is told as the server's own. One that cannot
    delete scores (`deletes` is False) answers 405. `asked` are the names and the labels, or
    versions, of the prompts that were asked for. What arrives again replaces what was there.
    """

    def __init__(self, mode: Mode = "ok", version: tuple[int, int] = (4, 59)) -> None:
        api = "/api/public"
        super().__init__(
            [
                Route(f"{api}/otel/v1/traces", self._traces, methods=["POST"]),
                Route(f"{api}/v2/observations", self._list_observations, methods=["GET"]),
                Route(f"{api}/traces", self._delete_traces, methods=["DELETE"]),
                Route(f"{api}/scores", self._take_scores, methods=["POST"]),
                Route(f"{api}/scores/{{score_id}}", self._delete_score, methods=["DELETE"]),
                Route(f"{api}/ingestion", self._ingestion, methods=["POST"]),
                Route(f"{api}/health", self._health),
                Route(f"{api}/projects", self._projects),
                Route(f"{api}/v2/prompts", self._create_prompt, methods=["POST"]),
                Route(f"{api}/v2/prompts/{{name:path}}", self._prompt),
                Route(f"{api}/v2/datasets", self._create_dataset, methods=["POST"]),
                Route(f"{api}/v2/datasets/{{name:path}}", self._dataset),
                Route(f"{api}/dataset-items", self._put_item, methods=["POST"]),
                Route(f"{api}/dataset-items", self._list_items, methods=["GET"]),
            ]
        )
        self.mode: Mode = mode
        self.version = version
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

    @property
    def scores(self) -> list[JsonObject]:
        """The scores."""
        return list(self._scores.values())

    def scores_of(self, trace_id: str) -> dict[str, Any]:
        """The scores of a trace by name."""
        return {one["name"]: one["value"] for one in self.scores if one["traceId"] == trace_id}

    @property
    def trace_ids(self) -> list[str]:
        """The traces that spans came for, oldest first."""
        ordered = sorted(self.spans, key=lambda span: span.start)
        return list(dict.fromkeys(span.trace_id for span in ordered))

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
        assert len(roots) == 1, f"traces {wanted} have roots {[span.name for span in roots]}"
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
            lambda: len(self._scores) >= n,
            seconds=timeout,
            otherwise=lambda: f"{n} score(s) wanted, got {self.scores}",
        )
        return self.scores

    def put(self, name: str, prompt: str | list[JsonObject], label: str = "production") -> int:
        """Save a new version of a prompt, as an admin does; return its number."""
        versions = self.prompts.setdefault(name, [])
        for version in versions:
            version.labels = [old for old in version.labels if old not in {label, "latest"}]
        versions.append(Version(len(versions) + 1, prompt, [label, "latest"]))
        return len(versions)

    def labelled(self, name: str, label: str) -> Version | None:
        """The version of a prompt that has a label, or this number."""
        versions = self.prompts.get(name, [])
        return next((one for one in versions if label in (*one.labels, str(one.number))), None)

    def add(self, dataset: str, item: JsonObject) -> None:
        """Add an item that an admin made, in a dataset that is made with it."""
        self._made(dataset)
        self.items[item["id"]] = self._item({**item, "datasetName": dataset})

    async def _trouble(self, request: Request) -> Response | None:
        """What `mode` makes of a request; None if it is to be served."""
        self.requests.append(f"{request.method} {request.url.path}")
        if self.mode == "black_hole":
            while (await request.receive())["type"] != "http.disconnect":
                pass
            return Response()
        if self.mode == "html":
            return Response("<h1>Sign in</h1>", media_type="text/html")
        if self.mode == "other":
            return JSONResponse({"status": "welcome"})
        keys = base64.b64encode(f"{self.public_key}:{self.secret_key}".encode()).decode()
        is_known = request.headers.get("authorization") == f"Basic {keys}"
        is_open = request.url.path == "/api/public/health"
        if self.mode == "401" or not (is_known or is_open):
            return JSONResponse({"message": "Invalid credentials.", "error": "Unauthorized"}, 401)
        if self.mode != "ok":
            return JSONResponse({"message": "Out of order."}, int(self.mode), {"Retry-After": "1"})
        return None

    async def _traces(self, request: Request) -> Response:
        body = await request.body()
        if trouble := await self._trouble(request):
            return trouble
        known = {(span.trace_id, span.span_id): span for span in [*self.spans, *spans_in(body)]}
        self.spans = [*known.values()]
        return Response(b"", media_type="application/x-protobuf")

    async def _list_observations(self, request: Request) -> Response:
        if trouble := await self._trouble(request):
            return trouble
        asked = request.query_params
        before = datetime.fromisoformat(asked.get("toStartTime", "9999-01-01T00:00:00+00:00"))
        # As in Langfuse, traces that are deleted meanwhile do not move a page.
        after = float(asked.get("cursor", 0))
        found = sorted(
            (
                span
                for span in self.spans
                if span.user == asked["userId"] and after < span.start < before.timestamp()
            ),
            key=lambda span: span.start,
        )
        page = found[: int(asked["limit"])]
        cursor = repr(page[-1].start) if len(found) > len(page) else None
        return JSONResponse({"data": [*map(as_observation, page)], "meta": {"cursor": cursor}})

    async def _delete_traces(self, request: Request) -> Response:
        gone = (await request.json())["traceIds"]
        if trouble := await self._trouble(request):
            return trouble
        self.spans = [span for span in self.spans if span.trace_id not in gone]
        self._scores = {k: v for k, v in self._scores.items() if v["traceId"] not in gone}
        return JSONResponse({"message": "Traces deleted successfully"})

    async def _take_scores(self, request: Request) -> Response:
        body = await request.json()
        if trouble := await self._trouble(request):
            return trouble
        self._scores |= {score["id"]: score for score in body}
        return JSONResponse({"message": "Accepted"}, 202)

    async def _delete_score(self, request: Request) -> Response:
        if trouble := await self._trouble(request):
            return trouble
        if not self.deletes:
            return Response(status_code=405)
        if self._scores.pop(request.path_params["score_id"], None) is None:
            return JSONResponse({"message": "Score not found", "error": "NotFound"}, 404)
        return JSONResponse({"message": "Score deletion request received"}, 202)

    async def _ingestion(self, request: Request) -> Response:
        events = (await request.json())["batch"]
        if trouble := await self._trouble(request):
            return trouble
        scores = [event["body"] for event in events if event["type"] == "score-create"]
        self._scores |= {score["id"]: score for score in scores}
        accepted = [{"id": event["id"], "status": 201} for event in events]
        return JSONResponse({"successes": accepted, "errors": []}, 207)

    async def _health(self, request: Request) -> Response:
        version = ".".join(map(str, (*self.version, 0)))
        healthy = JSONResponse({"status": "OK", "version": version})
        return await self._trouble(request) or healthy

    async def _projects(self, request: Request) -> Response:
        organization = {"id": "organization-1", "name": "The wine club"}
        project = {"id": "project-1", "name": "Sommelier", "metadata": {}}
        known = {"data": [project | {"organization": organization}]}
        return await self._trouble(request) or JSONResponse(known)

    async def _prompt(self, request: Request) -> Response:
        name, asked = request.path_params["name"], request.query_params
        label = asked.get("version") or asked.get("label", "production")
        self.asked.append((name, label))
        if trouble := await self._trouble(request):
            return trouble
        version = self.labelled(name, label)
        return _not_found("Prompt") if version is None else JSONResponse(as_json(name, version))

    async def _create_prompt(self, request: Request) -> Response:
        body: JsonObject = await request.json()
        if trouble := await self._trouble(request):
            return trouble
        name, (label,) = body["name"], body["labels"]
        kinds = {isinstance(one.prompt, str) for one in self.prompts.get(name, [])}
        if kinds - {body.get("type", "text") == "text"}:
            mixed = "Previous versions have different prompt type."
            return JSONResponse({"message": mixed, "error": "InvalidRequestError"}, 400)
        number = self.put(name, body["prompt"], label)
        return JSONResponse(as_json(name, self.prompts[name][number - 1]), 201)

    def _made(self, name: str) -> JsonObject:
        known = {"name": name, "description": None, "metadata": None, "projectId": "project-1"}
        times = {"createdAt": TIME, "updatedAt": TIME}
        new = {"id": f"dataset-{len(self.datasets) + 1}", **known, **times}
        return self.datasets.setdefault(name, new)

    def _item(self, sent: JsonObject) -> JsonObject:
        return {
            **{"input": None, "expectedOutput": None, "metadata": None, "status": "ACTIVE"},
            **{"createdAt": TIME, "updatedAt": TIME, "mediaReferences": []},
            "datasetId": self.datasets[sent["datasetName"]]["id"],
            **{name: value for name, value in sent.items() if value is not None},
        }

    async def _create_dataset(self, request: Request) -> Response:
        sent = await request.json()
        return await self._trouble(request) or JSONResponse(self._made(sent["name"]))

    async def _dataset(self, request: Request) -> Response:
        if trouble := await self._trouble(request):
            return trouble
        found = self.datasets.get(request.path_params["name"])
        return JSONResponse(found) if found else _not_found("Dataset")

    async def _put_item(self, request: Request) -> Response:
        sent = await request.json()
        if trouble := await self._trouble(request):
            return trouble
        self.items[sent["id"]] = self._item(sent)
        return JSONResponse(self.items[sent["id"]])

    async def _list_items(self, request: Request) -> Response:
        if trouble := await self._trouble(request):
            return trouble
        name = request.query_params["datasetName"]
        page, limit = (int(request.query_params[key]) for key in ("page", "limit"))
        found = [item for item in self.items.values() if item["datasetName"] == name]
        pages = math.ceil(len(found) / limit)
        meta = {"page": page, "limit": limit, "totalItems": len(found), "totalPages": pages}
        return JSONResponse({"data": found[(page - 1) * limit : page * limit], "meta": meta})


def _not_found(what: str) -> Response:
    missing = {"message": f"{what} not found", "error": "LangfuseNotFoundError"}
    return JSONResponse(missing, 404)


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


def as_json(name: str, version: Version) -> JsonObject:
    """A version of a prompt as the server shows it."""
    return {
        **{"id": f"{name}-{version.number}", "projectId": "project-1", "createdBy": "API"},
        **{"createdAt": TIME, "updatedAt": TIME, "isActive": None, "config": {}, "tags": []},
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
    """The spans of a request, compressed or not."""
    if body.startswith(b"\x1f\x8b"):
        body = gzip.decompress(body)
    return [
        span_of(span)
        for batch in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in batch.scope_spans
        for span in scope.spans
    ]


def span_of(span: trace_pb2.Span) -> Span:
    """A span from its protobuf message."""
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
    """Attributes by name."""
    return {pair.key: value_of(pair.value) for pair in pairs}


def value_of(value: AnyValue) -> Any:
    """An attribute's value as Python has it."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [value_of(one) for one in value.array_value.values]
    return None if kind is None else getattr(value, kind)
