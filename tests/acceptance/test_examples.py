"""The examples of docs/embedding.md are run as they stand, against a server of their own."""

import re
import subprocess
import sys
from pathlib import Path

from tests.doubles.model_server import ModelServer, answer, answer_json, tool_call

ROOT = Path(__file__).parents[2]
MODEL_URL = "http://localhost:11434/v1"


def test_the_examples_of_the_loop_run_one_after_the_other(
    model_server: ModelServer, tmp_path: Path
) -> None:
    """Each goes on from the one before."""
    model_server.script(
        tool_call("spent", {}),
        answer_json({"advice": "No coat."}),
        answer_json({"advice": "No umbrella."}),
        answer("A warm coat."),
    )
    page = (ROOT / "docs/embedding.md").read_text("utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    ran = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-c",
            code.replace(MODEL_URL, model_server.base_url),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == (
        "No coat.\nNo umbrella.\n4 0\nA warm coat.\n",
        "",
    )
    first, *_ = model_server.requests
    assert first.json["temperature"] == 0.2
    assert first.json["reasoning_effort"] == "low"
    roles = [message["role"] for message in model_server.requests[-2].json["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
