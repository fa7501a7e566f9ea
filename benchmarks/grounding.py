"""`python -m benchmarks.grounding [ORDINARY FORGED]`: what the check of free text stops, and not.

Both files are JSON lines with `language` and `text`, each text judged alone and without evidence,
as the words of a model that called no tool. `--show` prints the ordinary ones that were stopped and
the forged ones that were not.
"""

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Final

from agent.engine.contract import Evidence
from agent.sommelier.contract import unsupported
from agent.sommelier.sommelier_prompts import SommelierResponse

OUTSIDE: Final = Path(__file__).parent.parent / "tests" / "evals" / "outside"


def texts(file: Path) -> list[str]:
    """Read the texts of a file."""
    return [json.loads(line)["text"] for line in file.read_text("utf-8").splitlines()]


def judged(said: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """Say of each text what is made up in it, None if nothing is."""
    for text in said:
        answer = SommelierResponse(response_type="informational", intro=text)
        yield text, unsupported(answer, Evidence())


def main() -> None:
    """Print the figures of two files."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grounding", description=__doc__)
    parser.add_argument("ordinary", nargs="?", type=Path, default=OUTSIDE / "ordinary.jsonl")
    parser.add_argument("forged", nargs="?", type=Path, default=OUTSIDE / "forged.jsonl")
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    for name, wrongly in (("ordinary", True), ("forged", False)):
        began = perf_counter()
        found = list(judged(texts(getattr(given, name))))
        milliseconds = 1000 * (perf_counter() - began) / len(found)
        stopped = sum(problem is not None for _, problem in found)
        print(
            f"{name}: {len(found)} sentences, {stopped} stopped ({stopped / len(found):.1%}), "
            f"{milliseconds:.2f} ms each"
        )
        if given.show:
            wrong = (each for each in found if (each[1] is not None) == wrongly)
            for text, problem in wrong:
                print(f"  {text!r} {problem or ''}")


if __name__ == "__main__":
    main()
