"""The README's snippet is run as it stands, against a server of its own."""

import re
import subprocess
import sys
from pathlib import Path

from tests.doubles.model_server import ModelServer, answer, answer_json, tool_call

README = Path(__file__).parents[2] / "README.md"
MODEL_URL = "http://localhost:11434/v1"


def snippet() -> str:
    blocks: list[str] = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 1
    return blocks[0]


def run_against(url: str) -> tuple[str, str]:
    """What the snippet prints and complains of."""
    code = snippet()
    assert MODEL_URL in code
    ran = subprocess.run(
        [sys.executable, "-c", code.replace(MODEL_URL, url)],
        cwd=README.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ran.stdout, ran.stderr


def test_the_snippet_is_short() -> None:
    assert len([line for line in snippet().splitlines() if line.strip()]) <= 15


def test_the_snippet_runs_a_tool_and_its_own_rule(model_server: ModelServer) -> None:
    model_server.script(
        tool_call("weather", {"city": "Rome"}),
        answer_json({"advice": "No coat, and no umbrella either. " * 5}),
        answer_json({"advice": "No coat."}),
    )
    assert run_against(model_server.base_url) == ("No coat.\n", "")
    messages = model_server.requests[-1].json["messages"]
    assert [message["content"] for message in messages if message["role"] == "tool"] == [
        "Rome: 31 °C, no wind"
    ]
    assert "failed validation: too long." in messages[-1]["content"]


def test_with_the_server_down_the_snippet_says_what_is_wrong() -> None:
    url = "http://127.0.0.1:1/v1"
    said = f"qwen2.5:7b could not be reached (ConnectError); is the server at {url}/ running?\n"
    assert run_against(url) == (said, "")


def python_of(document: Path) -> list[str]:
    blocks: list[str] = re.findall(r"```python\n(.*?)```", document.read_text("utf-8"), re.DOTALL)
    return blocks


def test_the_examples_of_the_loop_run_one_after_the_other(
    model_server: ModelServer, tmp_path: Path
) -> None:
    """Those of docs/embedding.md; each goes on from the one before."""
    model_server.script(
        tool_call("spent", {}),
        answer_json({"advice": "No coat."}),
        answer_json({"advice": "No umbrella."}),
        answer("A warm coat."),
    )
    code = "\n".join(python_of(README.parent / "docs/embedding.md"))
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code.replace(MODEL_URL, model_server.base_url)],
        cwd=README.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == ("No coat.\nNo umbrella.\n4 0\nA warm coat.\n", "")
    first, *_ = model_server.requests
    assert first.json["temperature"] == 0.2
    assert first.json["reasoning_effort"] == "low"
    roles = [message["role"] for message in model_server.requests[-2].json["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
