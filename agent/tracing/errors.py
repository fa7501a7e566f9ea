"""Say what a server that traces, prompts and scores are sent to did wrong."""

from typing import Final

from agent.engine.errors import AgentError, quoted

KEYS: Final = "LANGFUSE_BASE_URL, LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"
REFUSALS: Final = frozenset({400, 413, 422})  # of what will never be accepted


class Unavailable(AgentError):
    """A server did not do what was asked; `status` is that of its answer, None without one."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def unavailable(error: Exception, name: str = "Langfuse", check: str = KEYS) -> Unavailable:
    """Return an error of Langfuse's client, or of HTTP, as one line for an admin."""
    status, body = getattr(error, "status_code", None), getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    told = f": {quoted(message, 200)}" if isinstance(message, str) else ""
    did = f"answered HTTP {status}" if status else f"gave no usable answer ({type(error).__name__})"
    return Unavailable(f"{name} {did}{told}; check {check}", status)
