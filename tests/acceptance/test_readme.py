"""The README's snippet is run as it stands, against a server of its own."""

import re
import subprocess
import sys
from pathlib import Path

from tests.doubles.model_server import ModelServer, answer_json, tool_call

README = Path(__file__).parents[2] / "README.md"
MODEL_URL = "http://localhost:11434/v1"


def snippet() -> str:
    blocks: list[str] = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 1
    return blocks[0]


def test_the_snippet_is_short() -> None:
    assert len([line for line in snippet().splitlines() if line.strip()]) <= 15


def test_the_snippet_runs_a_tool_and_its_own_rule(model_server: ModelServer) -> None:
    model_server.script(
        tool_call("weather", {"city": "Rome"}),
        answer_json({"advice": "No coat, and no umbrella either. " * 5}),
        answer_json({"advice": "No coat."}),
    )
    code = snippet()
    assert MODEL_URL in code
    ran = subprocess.run(
        [sys.executable, "-c", code.replace(MODEL_URL, model_server.base_url)],
        cwd=README.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == ("No coat.\n", "")
    messages = model_server.requests[-1].json["messages"]
    assert [message["content"] for message in messages if message["role"] == "tool"] == [
        "Rome: 31 °C, no wind"
    ]
    assert "failed validation: too long." in messages[-1]["content"]
