"""A Langfuse server with datasets: what its client really sends, decoded."""

import math
from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.doubles.langfuse_prompts import Version, as_json
from tests.doubles.otlp import Mode, OtlpReceiver, Span, decoded
from tests.doubles.server import JsonObject

LARGEST_PAGE = 100
EXPERIMENT = "langfuse.experiment."
TIME = "2026-01-01T00:00:00.000Z"


class LangfuseDatasets(OtlpReceiver):
    """Datasets by name, items by id, beside the traces and scores of `OtlpReceiver`.

    `prompts` are texts and their versions by name.
    """

    def __init__(self, mode: Mode = "ok") -> None:
        super().__init__(mode)
        self.datasets: dict[str, JsonObject] = {}
        self.items: dict[str, JsonObject] = {}
        self.prompts: dict[str, tuple[int, str]] = {}
        self._starlette.router.routes.extend(
            [
                Route("/api/public/v2/datasets", self._create, methods=["POST"]),
                Route("/api/public/v2/datasets/{name:path}", self._dataset),
                Route("/api/public/dataset-items", self._put, methods=["POST"]),
                Route("/api/public/dataset-items", self._list, methods=["GET"]),
            ]
        )

    def add(self, dataset: str, item: JsonObject) -> None:
        """An item that an admin made, in a dataset that is made with it."""
        self._made(dataset)
        self.items[item["id"]] = self._item({"status": "ACTIVE", **item, "datasetName": dataset})

    @property
    def linked(self) -> dict[str, list[Span]]:
        """The root spans of items by the name of their experiment."""
        roots: dict[str, list[Span]] = {}
        for span in self.spans:
            link = links_of(span)
            # As it stands: an id of nothing but digits is no number.
            if span.attributes.get(f"{EXPERIMENT}item.root_observation_id") == span.span_id:
                roots.setdefault(str(link["name"]), []).append(span)
        return roots

    def scores_of(self, trace_id: str) -> dict[str, float]:
        """The scores of a trace by name."""
        return {
            score["name"]: score["value"] for score in self.scores if score["traceId"] == trace_id
        }

    async def _prompt(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self.prompts:
            return await super()._prompt(request)
        number, text = self.prompts[name]
        return JSONResponse(as_json(name, Version(number, text, ["production"])))

    def _made(self, name: str) -> JsonObject:
        known = {
            "id": f"dataset-{len(self.datasets) + 1}",
            "name": name,
            "description": None,
            "metadata": None,
            "projectId": "project-1",
            "createdAt": TIME,
            "updatedAt": TIME,
        }
        return self.datasets.setdefault(name, known)

    def _item(self, sent: JsonObject) -> JsonObject:
        defaults: JsonObject = {"input": None, "expectedOutput": None, "metadata": None}
        return {
            "status": "ACTIVE",
            "datasetId": self.datasets[sent["datasetName"]]["id"],
            "createdAt": TIME,
            "updatedAt": TIME,
            "mediaReferences": [],
            **defaults,
            **{name: value for name, value in sent.items() if value is not None},
        }

    async def _create(self, request: Request) -> Response:
        sent = await request.json()
        if trouble := await self._trouble(request):
            return trouble
        return JSONResponse(self._made(sent["name"]))

    async def _dataset(self, request: Request) -> Response:
        if trouble := await self._trouble(request):
            return trouble
        found = self.datasets.get(request.path_params["name"])
        missing = {"message": "Dataset not found", "error": "LangfuseNotFoundError"}
        return JSONResponse(found) if found else JSONResponse(missing, 404)

    async def _put(self, request: Request) -> Response:
        sent = await request.json()
        if trouble := await self._trouble(request):
            return trouble
        self.items[sent["id"]] = self._item(sent)
        return JSONResponse(self.items[sent["id"]])

    async def _list(self, request: Request) -> Response:
        if trouble := await self._trouble(request):
            return trouble
        name = request.query_params["datasetName"]
        page, limit = (int(request.query_params[key]) for key in ("page", "limit"))
        assert limit <= LARGEST_PAGE
        found = [item for item in self.items.values() if item["datasetName"] == name]
        meta = {
            "page": page,
            "limit": limit,
            "totalItems": len(found),
            "totalPages": math.ceil(len(found) / limit),
        }
        return JSONResponse({"data": self._page(found, page, limit), "meta": meta})

    def _page(self, found: Sequence[JsonObject], page: int, limit: int) -> Sequence[JsonObject]:
        return found[(page - 1) * limit : page * limit]


def links_of(span: Span) -> Mapping[str, object]:
    """What ties a span to an experiment, each value decoded from JSON."""
    return {
        name.removeprefix(EXPERIMENT): decoded(value)
        for name, value in span.attributes.items()
        if name.startswith(EXPERIMENT)
    }
