"""Prompt management of a Langfuse server: versions that count up, labels that move."""

import base64
import itertools
from dataclasses import dataclass, field
from typing import Literal

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.doubles.server import JsonObject, LoopbackServer

_serial = itertools.count(1)
Mode = Literal["ok", "503", "html", "other", "black_hole"]


@dataclass
class Version:
    """One version of a prompt; a chat prompt is a list of messages."""

    number: int
    prompt: str | list[JsonObject]
    labels: list[str] = field(default_factory=list)


class LangfusePromptServer(LoopbackServer):
    """`LANGFUSE_BASE_URL` is `base_url`; only its own keys may come in.

    Each server has another public key: Langfuse's client is one for each in a process.

    `asked` are the names and labels, or versions, of the requests that came, whatever was answered.
    """

    def __init__(self) -> None:
        path = "/api/public/v2/prompts"
        super().__init__(
            [
                Route(f"{path}/{{name:path}}", self._get),
                Route(path, self._create, methods=["POST"]),
            ]
        )
        self.public_key = f"pk-lf-prompts-{next(_serial)}"
        self.secret_key = "sk-lf-test"
        self.mode: Mode = "ok"
        self.prompts: dict[str, list[Version]] = {}
        self.asked: list[tuple[str, str]] = []

    def put(self, name: str, prompt: str | list[JsonObject], label: str = "production") -> int:
        """A new version, as an admin saves it; its number."""
        versions = self.prompts.setdefault(name, [])
        for version in versions:
            version.labels = [each for each in version.labels if each not in {label, "latest"}]
        versions.append(Version(len(versions) + 1, prompt, [label, "latest"]))
        return len(versions)

    def labelled(self, name: str, label: str) -> Version | None:
        """The version of a prompt that has a label."""
        versions = self.prompts.get(name, [])
        return next((each for each in versions if label in each.labels), None)

    def numbered(self, name: str, number: int) -> Version | None:
        """The version of a prompt that has a number."""
        return next((each for each in self.prompts.get(name, []) if each.number == number), None)

    async def _get(self, request: Request) -> Response:
        name = request.path_params["name"]
        number = request.query_params.get("version")
        label = request.query_params.get("label", "production")
        self.asked.append((name, number or label))
        if trouble := await self._trouble(request):
            return trouble
        version = self.numbered(name, int(number)) if number else self.labelled(name, label)
        if version is None:
            missing = f"Prompt not found: '{name}' with {number or label!r}"
            return JSONResponse({"message": missing, "error": "LangfuseNotFoundError"}, 404)
        return JSONResponse(as_json(name, version))

    async def _create(self, request: Request) -> Response:
        if trouble := await self._trouble(request):
            return trouble
        body: JsonObject = await request.json()
        name, (label,) = body["name"], body["labels"]
        kinds = {isinstance(each.prompt, str) for each in self.prompts.get(name, [])}
        if kinds - {body.get("type", "text") == "text"}:
            mixed = "Previous versions have different prompt type."
            return JSONResponse({"message": mixed, "error": "InvalidRequestError"}, 400)
        number = self.put(name, body["prompt"], label)
        return JSONResponse(as_json(name, self.prompts[name][number - 1]), 201)

    async def _trouble(self, request: Request) -> Response | None:
        if self.mode == "black_hole":
            while (await request.receive())["type"] != "http.disconnect":
                pass
            return Response()
        if self.mode == "503":
            return JSONResponse({"message": "Service unavailable"}, 503, {"Retry-After": "30"})
        if self.mode == "html":
            return Response("<h1>Sign in</h1>", media_type="text/html")
        if self.mode == "other":
            return JSONResponse({"status": "welcome"})
        keys = base64.b64encode(f"{self.public_key}:{self.secret_key}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {keys}":
            refused = "Invalid credentials. Confirm that you've configured the correct host."
            return JSONResponse({"message": refused, "error": "UnauthorizedError"}, 401)
        return None


def as_json(name: str, version: Version) -> JsonObject:
    """A version as the server shows it."""
    return {
        "id": f"{name}-{version.number}",
        "createdAt": "2026-01-01T00:00:00.000Z",
        "updatedAt": "2026-01-01T00:00:00.000Z",
        "projectId": "project-1",
        "createdBy": "API",
        "name": name,
        "version": version.number,
        "type": "text" if isinstance(version.prompt, str) else "chat",
        "prompt": version.prompt,
        "isActive": None,
        "config": {},
        "tags": [],
        "labels": version.labels,
        "commitMessage": None,
        "resolutionGraph": None,
    }
