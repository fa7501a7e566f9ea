"""Words of a message and what they mean: tokens, known phrases, slips of the pen. Pure.

A phrase is looked up as the stems of its words, the longest first. What a phrase means in the
language of the message goes before what it means elsewhere, and words of grammar ("not", "under",
"how many") count in their own language only.

Whether a kind of wine or a taste is named because it is not wanted, a linear model tells by the
words around it, fitted by `python -m benchmarks.house polarity --write` to messages in which each
is marked. It hears what no list of negations has: "holz mag er aber gar nicht".
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import compress, pairwise
from pathlib import Path
from typing import Final, NamedTuple

from agent.classifier import classifier, hashed
from agent.house_sommelier.data import Entry, entries, grammar, load
from agent.text import LANGUAGES, Language, Match, fold, language_of, pattern
from agent.text import stem as snowball
from agent.vocabulary import is_word

_SUPERLATIVE: Final = pattern(r"(\w{2,30})iss?im[oaie]s?\Z")
_TOKEN: Final = pattern(
    r"[0-9]+(?:[.,'’][0-9]+)*|[\p{L}\p{Nl}\p{No}]+|[-–—€$£¥₹₽₩₺₪฿₫₴%°+±~<>=.,;:!?()/\n]"
)
_WORD: Final = pattern(r"[\p{L}\p{M}]+")
_GLUED: Final = pattern(r"(qu|[cdjlmnst])([aeiouyh]\w{1,30})|(j)(\w{3,30})")
_CONTENT: Final = frozenset(
    "dish hue styles grapes countries regions sweetness bodies tannins acidities text "
    "allergen currency unconverted percent name".split()
)
"""Fields whose words are understood in any language."""
_COMPOUNDED: Final = frozenset(
    "dish hue styles countries regions grapes allergen allergy wine".split()
)
_NOUNS: Final = frozenset("dish text grapes regions countries name".split())
_NAMES: Final = frozenset("grapes regions countries".split())
_NO_VOTE: Final = frozenset("grapes regions entity".split())
_STEMMED: Final = 4
_LEAST_SOUNDS: Final = 4
_MOST_LONGER: Final = 3
_OF_ANOTHER: Final = 2
"""Words before a phrase that may name who it is said of."""
_SHORTEST_SLIP: Final = 5
_SURE_SLIP: Final = 7
_SHORTEST_PART: Final = 4
_PHRASE_VOTE: Final = 0.7
"""What a phrase that one language has tells of it; a word that one language has tells 1."""
_LONGEST_TEXT: Final = 2000
_FEW_WORDS: Final = 3
_DASHES: Final = frozenset("-–—")


class Meaning(NamedTuple):
    """One thing that a phrase says: a field and its values."""

    field: str
    values: tuple[str, ...]


Glossary = tuple[tuple[str, tuple[Meaning, ...]], ...]
"""Texts that no table knows, and what they mean."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a number or a sign: as written, as compared, and where it stands."""

    written: str
    stem: str
    start: int
    end: int

    @property
    def is_word(self) -> bool:
        """Whether this is a word or a number."""
        return self.written[0].isalnum()


@dataclass(frozen=True, slots=True)
class Span:
    """A known phrase: where it starts and ends, in tokens, and what it means."""

    start: int
    end: int
    meanings: tuple[Meaning, ...] = ()

    @property
    def fields(self) -> frozenset[str]:
        """The fields it speaks of."""
        return frozenset(meaning.field for meaning in self.meanings)

    def values(self, field: str) -> tuple[str, ...]:
        """The values of one field."""
        return next((each.values for each in self.meanings if each.field == field), ())


class Phrases:
    """The words of a message, and the known phrases among them by where they begin and end."""

    def __init__(
        self, words: Sequence[Token], spans: Sequence[Span], languages: tuple[Language, ...] = ()
    ) -> None:
        self.words, self.spans, self.languages = words, spans, languages
        self._starts = {span.start: span for span in spans}
        self._ends = {span.end: span for span in spans}

    def at(self, place: int) -> Span:
        """The phrase that begins at a place; one without words and meaning if none does."""
        return self._starts.get(place) or Span(place, place)

    def before(self, place: int) -> Span:
        """The phrase that ends before a place; one without words and meaning if none does."""
        return self._ends.get(place) or Span(place, place)

    def stem(self, place: int) -> str:
        """The stem of a word; empty beyond the message."""
        return self.words[place].stem if 0 <= place < len(self.words) else ""

    def is_among(self, place: int, name: str) -> bool:
        """Whether the word at a place is on a list of words of grammar."""
        inside = 0 <= place < len(self.words)
        return inside and fold(self.words[place].written) in grammar(name)

    def is_of_another(self, span: Span) -> bool:
        """Whether a phrase is said of somebody else: "my brother does not drink"."""
        before = range(span.start - _OF_ANOTHER, span.start)
        lists = ("persons", "third_persons")
        return any(self.is_among(at, name) for at in before for name in lists)

    def written(self, start: int, end: int) -> str:
        """The words from `start` to before `end`, as the person wrote them."""
        return " ".join(word.written for word in self.words[start:end])

    def with_spans(self, spans: Iterable[Span]) -> "Phrases":
        """The same words with other phrases."""
        return Phrases(self.words, list(spans), self.languages)


def stem(word: str) -> str:
    """A folded word without the commonest plural endings; the same for phrases and messages."""
    if len(word) < _STEMMED or not word.endswith("s") or word.endswith("ss"):
        return word
    if word.endswith("ies") and len(word) > _STEMMED:
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("shes", "ches", "xes", "zes", "oes")) else word[:-1]


def tokens(text: str) -> list[Token]:
    """The words and signs of a text, at most 2,000 characters of it, as written.

    "Don't", "dont" and "nn" are "do not" and "non"; a dash counts before a number only.
    """
    found: list[Token] = []
    matches = list(_TOKEN.finditer(text[:_LONGEST_TEXT]))
    for at, each in enumerate(matches):
        word, follows = each[0], matches[at + 1][0] if at + 1 < len(matches) else ""
        if word in _DASHES and not (follows[:1].isdecimal() or follows[:1] in "€$£"):
            continue
        if word == "t" and found and found[-1].stem.endswith("n") and len(found[-1].stem) > 1:
            last = found.pop()
            stemmed = "can" if last.stem == "can" else stem(last.stem[:-1])
            found += [replace(last, stem=stemmed), Token("not", "not", *each.span())]
        elif written := load("grammar")["short"].get(fold(word)):
            found += [Token(part, stem(part), *each.span()) for part in written.split()]
        else:
            found.append(Token(word, stem(fold(word)), *each.span()))
    return found


def written_out(text: str, spoken: Language | None) -> str:
    """A message with what its language's writers shorten or run together: "jsuis", "q", "dalcool".

    Of French letters before a word those are parted that make a word of French with it.
    """
    language = language_of(text) or spoken
    short = load("shorthand").get(language, {}) if language else {}

    def whole(found: Match) -> str:
        word = fold(found[0])
        if word in short:
            return str(short[word])
        parted = _GLUED.fullmatch(word) if language == "fr" else None
        head, tail = (parted[1] or "je", parted[2] or parted[4]) if parted else ("", "")
        is_one = is_word(word, "fr") or not tail or not is_word(tail, "fr")
        return found[0] if is_one else f"{head} {tail}"

    return _WORD.sub(whole, text[:_LONGEST_TEXT]) + text[_LONGEST_TEXT:]


def key(phrase: str) -> tuple[str, ...]:
    """A phrase as it is looked up."""
    said = phrase.split()
    if phrase.replace(" ", "").isalpha() and not load("grammar")["short"].keys() & set(said):
        return tuple(stem(fold(word)) for word in said)
    return tuple(each.stem for each in tokens(phrase) if each.written not in "-–—.,;:!?()/")


class _Lexicon:
    """Every phrase by its words, and what helps to read misspelt and compound words."""

    def __init__(self) -> None:
        self.phrases: dict[tuple[str, ...], tuple[Entry, ...]] = {}
        for entry in entries():
            for phrase in entry.phrases:
                if written := key(phrase) or tuple(phrase):
                    self.phrases[written] = _with(self.phrases.get(written, ()), entry)
        self.longest: dict[str, int] = {}
        for each in self.phrases:
            self.longest[each[0]] = max(len(each), self.longest.get(each[0], 0))
        self.words = frozenset(word for each in self.phrases for word in each) | stop_words()
        single = {each[0]: found for each, found in self.phrases.items() if len(each) == 1}
        self.name_words = frozenset(
            word
            for each, found in self.phrases.items()
            if _is_of(found, _NAMES)
            for word in each
            if len(word) > _SHORTEST_SLIP
        )
        self.names = frozenset(word for word, found in single.items() if _is_of(found, _NAMES))
        known = {word for word, found in single.items() if _is_of(found, _COMPOUNDED)}
        self.parts = frozenset(word for word in known if len(word) >= _SHORTEST_PART)
        self.slips = _slips(
            self.names | self.name_words | {word for word in known if len(word) > _SURE_SLIP}
        )


@cache
def lexicon() -> _Lexicon:
    """Every phrase, read when the first message comes."""
    return _Lexicon()


def _with(known: tuple[Entry, ...], entry: Entry) -> tuple[Entry, ...]:
    """What a phrase means with one entry more; of a language's dishes the last one holds."""
    if entry.meanings[0][0] == "dish":
        others = (
            each.meanings[0][0] != "dish" or each.language != entry.language for each in known
        )
        known = tuple(compress(known, others))
    return (*known, entry)


def _is_of(found: Sequence[Entry], fields: frozenset[str]) -> bool:
    return any(field in fields for entry in found for field, _ in entry.meanings)


def _slips(words: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """For every word with one letter left out, the words that it may be."""
    found: dict[str, list[str]] = {}
    for word in sorted(words):
        if len(word) >= _SHORTEST_SLIP:
            for at in range(len(word)):
                found.setdefault(word[:at] + word[at + 1 :], []).append(word)
    return {slip: tuple(dict.fromkeys(meant)) for slip, meant in found.items()}


@cache
def grammar_stems(name: str) -> frozenset[str]:
    """The stems of one list of words of grammar."""
    return frozenset(map(stem, grammar(name)))


@cache
def stop_words(language: str = "") -> frozenset[str]:
    """The stems of words that say nothing, in one language or all.

    "houses" are those of names of wines, "chatter" those that name nothing to eat or to drink.
    """
    chosen = (language,) if language else LANGUAGES
    return frozenset(
        stem(fold(word)) for code in chosen for word in load("stopwords")[code].split()
    )


def _respelled(words: Sequence[Token], languages: Sequence[Language]) -> list[Token]:
    """`words`, the unknown ones as the known word or words that they are written for."""
    found: list[Token] = []
    for word in words:
        known = [word.stem] if word.stem in lexicon().words else _meant(word, languages)
        found += [replace(word, stem=each) for each in known]
    return found


def _meant(token: Token, languages: Sequence[Language]) -> list[str]:
    """What an unknown word is: spelt otherwise, inflected, put together, mistyped, by ear."""
    word = token.stem
    plain = word.replace("ae", "a").replace("oe", "o").replace("ue", "u")
    if said := next((each for each in (plain, *_plainly(token)) if each in lexicon().words), ""):
        return [said]
    if len(word) < _SHORTEST_SLIP or not word.isalpha():
        return [word]
    for language in languages:
        base = snowball(fold(token.written), language)
        found = _inflected(language).get(base, "")
        # A word without an ending is no form of a longer one: Hamburg is no hamburger.
        if found and (base != word or len(found) <= len(word) + 1):
            return [found]
    parts = _parts(word) or _parts(plain)
    if parts and (len(parts) > 1 if not languages else {"de", "nl"} & set(languages)):
        return parts
    slipped = _slipped(word)
    return [slipped if slipped != word else _heard(word)]


def _plainly(token: Token) -> Iterator[str]:
    """What a word in -ísimo or -issimo, which is "very", may be without it: "dulcísimo"."""
    if found := _SUPERLATIVE.search(fold(token.written)):
        yield from (stem(f"{found[1]}{vowel}") for vowel in "oe")


@cache
def _inflected(language: Language) -> Mapping[str, str]:
    """The known single words of a language by their stems: "lagern" for "lagere"."""
    own = {
        written[0]
        for written, found in lexicon().phrases.items()
        if len(written) == 1 and any(each.language == language for each in found)
    }
    return {snowball(word, language): word for word in sorted(own) if len(word) >= _SHORTEST_SLIP}


def _sounds(word: str) -> str:
    """The consonants of a word as they are heard: those of "shartoneh" are "Chardonnay"'s."""
    for spelt, heard in load("grammar")["sounds"].items():
        word = word.replace(spelt, heard)
    kept = [letter for letter in word if letter not in "aeiouyh"]
    return "".join(each for at, each in enumerate(kept) if kept[at - 1 : at] != [each])


@cache
def _by_sound() -> Mapping[str, str]:
    """The names of grapes and places by their sounds."""
    return {_sounds(word): word for word in sorted(lexicon().name_words, reverse=True)}


def _heard(word: str) -> str:
    """The name of a grape or a place that sounds like a word; the word itself without one."""
    sounds = _sounds(word)
    is_long = len(word) >= _SURE_SLIP and len(sounds) >= _LEAST_SOUNDS and not _is_ordinary(word)
    meant = _by_sound().get(sounds, word) if is_long else word
    vowels = [next((each for each in spelt if each in "aeiou"), "") for spelt in (word, meant)]
    is_near = vowels[0] == vowels[1] and abs(len(meant) - len(word)) <= _MOST_LONGER
    return meant if is_near else word


def _is_ordinary(word: str) -> bool:
    """Whether a language has a word: "seriously" is no Sercial. Compounds are made of any."""
    return any(is_word(word, language) for language in ("en", "fr", "es", "it"))


def _slipped(word: str) -> str:
    """The known word that one letter left out, added, doubled, changed or swapped makes of it."""
    slips = lexicon().slips
    cut = [word[:at] + word[at + 1 :] for at in range(len(word))]
    one_off = [*slips.get(word, ()), *(each for each in cut if each in lexicon().names)]
    swapped = [meant for each in cut for meant in slips.get(each, ())]
    for meant in (*one_off, *swapped):
        if meant[0] != word[0] or abs(len(meant) - len(word)) > 1:
            continue
        if meant[:_SHORTEST_SLIP] != word[:_SHORTEST_SLIP] and _is_ordinary(word):
            continue
        same_letters = sorted(meant) == sorted(word) or set(meant) == set(word)
        if len(word) >= _SURE_SLIP or (same_letters and len(meant) >= _SHORTEST_SLIP):
            return meant
    return word


def _parts(word: str) -> list[str]:
    """A compound as its known parts, the last first to be looked for: "Zwiebel-rostbraten"."""
    parts = lexicon().parts
    for at in range(2, len(word) - _SHORTEST_PART + 1):
        tail, head = stem(word[at:]), word[:at]
        if tail in parts:
            spelt = (head, stem(head), head.removesuffix("n"), head.removesuffix("en"))
            known = [each for each in spelt if each in lexicon().words and len(each) > 1]
            if known or len(head) > 2:
                return [*known[:1], tail]
    for at in range(len(word) - 3, _SHORTEST_PART - 1, -1):
        if heads := [each for each in (word[:at], stem(word[:at])) if each in parts]:
            return heads[:1]
    return []


def parse(text: str, spoken: Language | None = None) -> Phrases:
    """The words and the known phrases of a message; `spoken` is the language of the talk so far."""
    raw = tokens(text)
    told = _likely_languages(raw, text)
    known = dict.fromkeys((*told, *((spoken,) if spoken else ())))
    words = _respelled(raw, tuple(known))
    languages = _likely_languages(words, text) or told
    is_short = spoken is not None and sum(word.is_word for word in words) <= _FEW_WORDS
    language = spoken if spoken in languages or not languages or is_short else languages[0]
    languages = (spoken,) if is_short and spoken else languages
    return Phrases(words, scan(words, language), languages)


def scan(words: Sequence[Token], language: Language | None) -> list[Span]:
    """The known phrases in a text, left to right, the longest wherever several begin."""
    found: list[Span] = []
    stems = tuple(token.stem for token in words)
    at = 0
    while at < len(stems):
        span = next(_spans_at(stems, at, language), None)
        if span:
            found.append(span)
        at = span.end if span else at + 1
    return found


def _spans_at(stems: tuple[str, ...], at: int, language: Language | None) -> Iterator[Span]:
    for length in range(min(lexicon().longest.get(stems[at], 0), len(stems) - at), 0, -1):
        if meanings := _meanings(stems[at : at + length], language):
            yield Span(at, at + length, meanings)


@cache
def _meanings(written: tuple[str, ...], language: Language | None) -> tuple[Meaning, ...]:
    found = lexicon().phrases.get(written, ())
    own = [each for each in found if language is None or each.language == language]
    # A foreign word that is a common word of this language is that ("dal", "die", "sin").
    is_common = len(written) == 1 and language is not None and written[0] in stop_words(language)
    anywhere = (each for each in found if each.language == "any")
    here = [*own, *(each for each in anywhere if not (is_common and _is_of([each], _NOUNS)))]
    meant = [each for entry in here for each in entry.meanings]
    if not is_common and not meant:
        meant += [(f, v) for each in found for f, v in each.meanings if f in _CONTENT]
    merged: dict[str, tuple[str, ...]] = {}
    for field, values in meant:
        merged[field] = tuple(dict.fromkeys((*merged.get(field, ()), *values)))
    if "dish" in merged:
        merged["dish"] = merged["dish"][-1:]
    return tuple(Meaning(field, values) for field, values in merged.items())


def _likely_languages(words: Sequence[Token], text: str) -> tuple[Language, ...]:
    """The languages a message may be in, equally likely; empty if nothing tells."""
    votes = dict.fromkeys(LANGUAGES, 0.0)
    for word in words:
        having = [code for code in LANGUAGES if word.stem in stop_words(code)]
        for code in having:
            votes[code] += 1 / len(having)
    for first, second in pairwise([None, *words]):
        pair = ((first.stem, second.stem),) if first and second else ()
        for written in ((second.stem,), *pair) if second else ():
            found = lexicon().phrases.get(written, ())
            spoken = {each.language for each in found} - {"any"}
            is_talk = len(written) == 1 and _is_of(found, frozenset({"talk"}))
            if len(spoken) == 1 and not (is_talk or _is_of(found, _NO_VOTE)):
                for code in LANGUAGES:
                    votes[code] += _PHRASE_VOTE * (code in spoken)
    for code, letters in load("grammar")["letters"].items():
        votes[code] += _PHRASE_VOTE * bool(set(letters) & set(text.casefold()))
    if told := language_of(text):
        votes[told] += _PHRASE_VOTE
    most = round(max(votes.values()), 3)
    return tuple(code for code in LANGUAGES if most and round(votes[code], 3) == most)


@cache
def names(language: Language) -> Mapping[Meaning, str]:
    """How `language` names a meaning: the first phrase of the first entry with just that."""
    named: dict[Meaning, str] = {}
    for entry in entries():
        if entry.language in (language, "any") and len(entry.meanings) == 1:
            named.setdefault(Meaning(*entry.meanings[0]), entry.phrases[0])
    return named


POLARITY_CLASSIFIER: Final = Path(__file__).with_name("polarity.bin")
LABELS: Final = ("wanted", "unwanted")
MENTIONS: Final = frozenset(
    "hue styles sweetness bodies tannins acidities grapes countries regions text".split()
)
_KINDS: Final = frozenset({"hue", "styles", "grapes", "countries", "regions"})
UNWANTED: Final = 0.5
"""From which likelihood on what words of grammar take for a wish is none."""
_AROUND: Final = 7
"""Words looked at on each side, as far as the sentence goes."""
_STOPS: Final = frozenset(".!?;\n")
_MARKERS: Final = ("not", "not_before", "refuse", "drop", "but", "cue", "only", "allergy")
_PLACES: Final = 3
"""Words beside it whose place counts; farther ones only stand before or behind."""


def is_mention(span: Span) -> bool:
    """Whether a phrase names a kind of wine or a taste alone; "not too dry" says more."""
    is_one_word = span.end - span.start == 1 or bool(span.fields & _KINDS)
    return is_one_word and bool(span.fields & MENTIONS) and not span.fields - MENTIONS


def unwanted(phrases: Phrases, span: Span) -> float:
    """Tell how likely a mention is there because it is not wanted."""
    return classifier(POLARITY_CLASSIFIER).likelihoods_of(features(phrases, span))["unwanted"]


def features(phrases: Phrases, span: Span) -> frozenset[int]:
    """Return what stands around a mention, as checksums."""
    before = _said(phrases, range(span.start - 1, span.start - 1 - _AROUND, -1))
    behind = _said(phrases, range(span.end, span.end + _AROUND))
    near = (before[0], behind[0])
    kind = min(span.fields & MENTIONS)
    beside = (
        " ".join(("n", *near)),
        " ".join(("n", *before[:2], near[1])),
        " ".join(("n", near[0], *behind[:2])),
        f"k {kind}",
        f"k {kind} {near[0]}",
        f"k {kind} | {near[1]}",
    )
    return hashed({*_side("b", before), *_side("a", behind), *beside})


def _said(phrases: Phrases, places: Sequence[int]) -> list[str]:
    """The words at some places up to the end of the sentence; another mention is any mention."""
    found: list[str] = []
    for at in places:
        word = phrases.stem(at)
        if not word or word in _STOPS:
            return [*found, word or "."]
        fields = phrases.at(at).fields
        found.append("<wine>" if fields & MENTIONS else "<dish>" if "dish" in fields else word)
        found[-1] = " ".join((found[-1], *(each for each in _MARKERS if each in fields)))
    return found


def _side(name: str, said: Sequence[str]) -> Iterator[str]:
    """Words, pairs and triples of one side, by how near they stand."""
    for at, word in enumerate(said):
        yield from (f"{name} {word}", f"{name}{min(at, _PLACES)} {word}")
    for at, (one, two) in enumerate(pairwise(said)):
        yield from (f"{name} {one} {two}", f"{name}{min(at, _PLACES - 1)} {one} {two}")
    yield from (
        f"{name} {' '.join(three)}" for three in zip(said, said[1:], said[2:], strict=False)
    )
