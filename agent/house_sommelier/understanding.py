"""From a person's words to what can be searched for. Pure; one message at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from agent.house_sommelier.exclusions import NOTHING_EXCLUDED, Exclusions, exclusions
from agent.house_sommelier.fields import either_colour, number_fields, said_fields
from agent.house_sommelier.lexicon import (
    Language,
    Match,
    Meaning,
    Token,
    languages,
    scan,
    spelled_out,
    tokens,
)
from agent.house_sommelier.number_words import in_digits
from agent.house_sommelier.prices import read_numbers
from agent.house_sommelier.spelling import respelled
from agent.house_sommelier.stopwords import house_words, likely_languages, stop_words
from agent.house_sommelier.superlatives import together
from agent.house_sommelier.wishes import sort_out
from agent.sommelier.wine import WineQuery

_PARTICLES: Final = frozenset("de du des la le les di del della dei von van d the of and".split())
_MOST_TEXT: Final = 300


@dataclass(frozen=True, slots=True)
class Understood:
    """What a message says. `query.model_fields_set` holds just the filters that it names.

    `name` is what looks like the name of a wine or producer, `leftovers` the words no table knows,
    `dishes` the foods in the person's own words, `courses` what each of them is called here,
    `without` what is ruled out, `foreign` a currency that cannot be converted, `elsewhere` whether
    an allergen was named that no wine declares, `languages` what it may be in, equally likely.
    """

    query: WineQuery
    name: str = ""
    leftovers: tuple[str, ...] = ()
    dishes: tuple[str, ...] = ()
    courses: tuple[tuple[str, ...], ...] = ()
    cues: frozenset[str] = frozenset()
    languages: tuple[Language, ...] = ()
    without: Exclusions = NOTHING_EXCLUDED
    foreign: str = ""
    elsewhere: bool = False

    @property
    def language(self) -> Language | None:
        """The language it is most likely in; None if nothing tells."""
        return next(iter(self.languages), None)

    @property
    def filters(self) -> frozenset[str]:
        """The names of the fields that the message sets."""
        return frozenset(self.query.model_fields_set)


def understand(text: str) -> Understood:
    """The filters, names and cues in one message."""
    numbers = read_numbers(in_digits(together(spelled_out(text))))
    words = respelled(tokens(numbers.rest))
    matches = scan(words)
    said = sort_out(words, matches)
    tongues = likely_languages(_telling_stems(words, matches), _foreign_votes(words, matches))
    language = next(iter(tongues), None)
    if numbers.alcohol_free:
        said.wanted.append(Meaning("styles", ("alcohol_free",)))
    fields = {
        **said_fields(said, either_colour(words, matches)),
        **number_fields(numbers, said),
    }
    known = _known(matches, said.denied_words)
    leftovers = [word.written for word in _unmatched(words, known)]
    proper = (name for name in _proper_names(words, known, language) if _tells(name))
    names = [*said.values("name"), *proper]
    if not (names or fields or said.values("text") or said.denied):
        names = leftovers
    names += numbers.years
    ranking = [*said.values("text"), *(names or _lone_capital(leftovers, language))]
    if ranking:
        fields["text"] = " ".join(ranking)[:_MOST_TEXT].strip()
    return Understood(
        query=WineQuery.model_validate(fields),
        name=" ".join(names),
        leftovers=tuple(leftovers),
        dishes=tuple(said.dishes(numbers.rest, words, language)),
        courses=said.courses(),
        cues=frozenset(said.values("cue")),
        languages=tongues,
        without=exclusions(said.denied, [words[at].stem for at in said.denied_words]),
        foreign=numbers.foreign,
        elsewhere=said.elsewhere or _names_only_elsewhere(matches),
    )


def _known(matches: Sequence[Match], denied: Sequence[int]) -> frozenset[int]:
    """The places of words that have been understood."""
    return frozenset(denied).union(*(range(match.start, match.end) for match in matches))


def _names_only_elsewhere(matches: Sequence[Match]) -> bool:
    """Whether "gluten free" or the like was asked for."""
    return any({each.field for each in match.meanings} == {"elsewhere"} for match in matches)


def _telling_stems(words: Sequence[Token], matches: Sequence[Match]) -> list[str]:
    """Names are the same in every language: a Sauvignon Blanc is no sign of French."""
    names = {at for match in matches for at in range(*_span_of_name(match))}
    return [word.stem for at, word in enumerate(words) if at not in names]


def _foreign_votes(words: Sequence[Token], matches: Sequence[Match]) -> list[str]:
    """The languages of phrases that belong to one language other than English."""
    keys = (tuple(word.stem for word in words[match.start : match.end]) for match in matches)
    spoken = (languages()[key] for key in keys)
    return [code for codes in spoken if len(codes) == 1 for code in codes if code not in "*en"]


def _span_of_name(match: Match) -> tuple[int, int]:
    is_name = match.meanings[0].field in ("grapes", "regions")
    return (match.start, match.end) if is_name else (match.start, match.start)


def _lone_capital(leftovers: Sequence[str], language: Language | None) -> list[str]:
    """A single unknown word with a capital, even at the start: "Krug under 300"."""
    lone = len(leftovers) == 1 and leftovers[0][0].isupper() and language != "de"
    return list(leftovers) if lone else []


def _unmatched(words: Sequence[Token], known: frozenset[int]) -> list[Token]:
    """The words that no table knows and that are worth searching for."""
    return [
        word
        for at, word in enumerate(words)
        if at not in known and word.is_word and len(word.stem) > 1 and word.stem not in stop_words()
    ]


def _proper_names(
    words: Sequence[Token], known: frozenset[int], language: Language | None
) -> Iterator[str]:
    """Unknown words with a capital: a run of them, or a single one within a sentence.

    German writes every noun with a capital, so there a single one says nothing.
    """
    if all(word.written.isupper() for word in words if word.is_word and len(word.written) > 1):
        return
    for run in _capital_runs(words, known):
        after_start = run[0] > 0 and words[run[0] - 1].is_word
        if len(run) > 1 or (after_start and language != "de"):
            yield " ".join(words[at].written for at in run)


def _tells(name: str) -> bool:
    """Whether a name is more than "Château"."""
    return not {token.stem for token in tokens(name)} <= house_words()


def _capital_runs(words: Sequence[Token], known: frozenset[int]) -> Iterator[list[int]]:
    run: list[int] = []
    for at in range(len(words) + 1):
        if at < len(words) and at not in known and _may_continue(words[at], bool(run)):
            run.append(at)
            continue
        while run and words[run[-1]].stem in _PARTICLES:
            run.pop()
        if run:
            yield run
        run = []


def _may_continue(word: Token, inside: bool) -> bool:
    if word.written[0].isupper():
        return inside or word.stem not in stop_words()
    return inside and word.stem in _PARTICLES
