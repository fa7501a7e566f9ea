"""`python -m benchmarks.grounding [FILE]`: what the check of free text stops, and what not.

The file is of JSON lines with `text` and `label` (`ordinary` or another); each text is judged
alone, as the words of a model that called no tool. Without a file they are sentences from outside.
`--show` prints the ordinary ones that were stopped and the others that were not.
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


def labelled(file: Path) -> tuple[list[str], list[str]]:
    """Read the ordinary texts of a file, and the others."""
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    ordinary = [each["text"] for each in rows if each["label"] == "ordinary"]
    return ordinary, [each["text"] for each in rows if each["label"] != "ordinary"]


def main() -> None:
    """Print the figures of a file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grounding", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    outside = texts(OUTSIDE / "ordinary.jsonl"), texts(OUTSIDE / "forged.jsonl")
    ordinary, forged = labelled(given.file) if given.file else outside
    for name, said, wrongly in (("ordinary", ordinary, True), ("forged", forged, False)):
        began = perf_counter()
        found = list(judged(said))
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
