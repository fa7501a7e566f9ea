"""Numbers in a request: price limits with their currency, alcohol limits and vintages.

What is understood is cut out of the text, so that no number is read twice. A number is a
price by its currency, its cents or a word like "under".
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from agent.sommelier.money import Currency

_NUMBER: Final = r"[0-9]{1,6}(?:[.,'][0-9]{1,3}){0,2}"
_CURRENCIES: Final[Mapping[Currency, str]] = MappingProxyType(
    {
        Currency.CAD: r"ca?\$|cad|canadian dollars?",
        Currency.AUD: r"au?\$|aud|australian dollars?",
        Currency.NZD: r"nz\$|nzd|new zealand dollars?",
        Currency.BRL: r"r\$|brl|reais|reales|reals?(?:\s+(?:brasi|brazi)\w*)?",
        Currency.USD: r"us\$|usd|\$|dollars?|d[oó]lar(?:es)?|dollar[io]|bucks?",
        Currency.EUR: r"€|euro['’]?s?|eur",
        Currency.GBP: r"£|gbp|pounds?|quid|pfund|livres|libras|sterline|pond",
        Currency.CHF: (
            r"chf|sfr\.?|(?:swiss )?francs?(?: suisses?)?|franken|francos?|franchi"
            r"|(?:zwitserse )?frank"
        ),
        Currency.JPY: r"¥|jpy|yen(?:es)?",
        Currency.SEK: r"sek|kronor",
        Currency.DKK: r"dkk|kroner",
        Currency.NOK: r"nok",
        Currency.PLN: r"pln|z[lł](?:oty(?:ch|s)?)?",
        Currency.CZK: r"czk|k[cč]",
        Currency.ZAR: r"zar|rand",
    }
)
_SYMBOL: Final = "|".join(_CURRENCIES.values())
_UNCONVERTED: Final = (
    r"(?:uae |moroccan |emirati )?dirhams?|dirhems?|aed|mad|rupees?|rupien|roupies?|rupias?|rupie"
    r"|roepies?|inr|r(?:o?u|oe)bles?|rubel|rublos?|rubli|roebels?|rub|yuan|renminbi|rmb|cny"
    r"|(?:korean |coreani )?won|krw|(?:argentine |mexican |chilean )?pesos?|pesi|mxn|ars|clp|cop"
    r"|(?:turkish )?liras?|lire(?: turche)?|huf|forints?|fiorini|lei|ron|leva|lew|bgn|baht|thb"
    r"|she(?:k|q)els?|schekel|sjekels?|ils|ri[ay]als?|sar|qar|dinars?|dinare|dinari|ringgit|myr"
    r"|rupiah|idr|dong|vnd|naira|ngn|cedis?|kronen|kroon|couronnes?|coronas?|corone|crowns?|kr"
    r"|hryvnias?|uah|(?:singapore|hong kong|taiwan(?:ese)?) dollars?|sgd|hkd|twd|php"
    r"|gulden|florins?|bitcoins?|btc|isk"
)

_MAX: Final = (
    r"under|below|(?:less|cheaper|lower) th[ae]n|no(?:t|thing)? (?:more|over|above)(?: than)?"
    r"|not exceeding|max(?:imum)?(?: price| of)?|up ?to|at most|within|until|spend|<=?"
    r"|budget(?: is| of| de| di| van)?|limit(?: is| of)?"
    r"|unter|bis(?: zu)?|h[öo]chstens|maximal|weniger als|(?:g[üu]nstiger|billiger) als"
    r"|moins de|sous|jusqu.?[àa]|pas plus de|menos de|por debajo de|hasta|m[áa]ximo"
    r"|meno di|sotto|fino a|(?:al )?massimo|non pi[ùu] di"
    r"|onder|tot|hooguit|hoogstens|maximaal|minder dan|goedkoper dan|niet meer dan|hasta los|maxi"
    r"|nicht mehr als|no m[áa]s de|unter den|al m[áa]ximo"
)
_MIN: Final = (
    r"over|above|more th[ae]n|not? (?:under|below|less th[ae]n)|at least|from|starting at"
    r"|min(?:imum)?(?: price| of)?|upwards? of|>=?"
    r"|mindestens|[üu]ber|ab|mehr als|au moins|plus de|[àa] partir de|al menos|m[áa]s de|desde"
    r"|almeno|pi[ùu] di|oltre|minstens|vanaf|boven|meer dan"
)
_ABOUT: Final = (
    r"around|about|roughly|approx(?:imately)?|circa|ca|~|close to|um(?: die)?|etwa|ungef[äa]hr"
    r"|environ|autour de|alrededor de|unos|intorno a|sui|ongeveer|rond(?: de)?|zo.?n|rund"
)
_MAX_AFTER: Final = (
    r"max(?:imum|imal)?|or less|or under|or below|tops|at most|oder weniger|o menos"
    r"|(?:al|come) massimo|massimo|(?:como )?m[áa]ximo|au maximum|au plus|maxi|maximaal|of minder"
    r"|h[öo]chstens|hooguit|ou moins|o meno"
)
_MIN_AFTER: Final = (
    r"\+|or more|and up|or over|and above|upwards|oder mehr|o m[áa]s|ou plus|of meer|o pi[ùu]"
)
_PERCENT: Final = (
    r"(?:%|per ?cent|prozent|pour ?cent|por ciento|per cento|abv|vol\b)"
    r"(?:\s*(?:abv|vol\b\.?|alcohol|alc\b\.?))*"
)
_COUNTED: Final = (
    r"people|persons?|guests|friends|adults|pax|of us|bottles|glass(?:es)?|cases|wines|reds"
    r"|whites|courses?|years?|months?|days?|hours?|minutes?|degrees?|°|[cm]l\b|l\b|lit(?:er|re)s?"
    r"|personen|leute|g[äa]ste|flaschen|jahren?|personnes|bouteilles|ans\b|personas|botellas"
    r"|a[ñn]os|persone|bottiglie|anni|jaar|mensen|gasten|flessen|vrienden"
    r"|points?|st\b|nd\b|rd\b|th\b|kg|grams?|pounds? of"
)


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


def _op(words: str) -> str:
    article = r"(?:\s+(?:an?|the|i|le|les|los|die|der))?"
    return rf"(?<![^\W_])(?:{words})[.:]?{article}\s*"


def _money(tag: str) -> str:
    before = rf"(?:(?P<before{tag}>(?<![a-z])(?:{_SYMBOL}))\s*)?"
    after = rf"(?:[\s-]*(?P<after{tag}>(?:{_SYMBOL})(?![a-z])))?"
    return rf"{before}(?<![0-9.,])(?P<n{tag}>{_NUMBER})(?![0-9]){after}"


_FOREIGN: Final = _pattern(
    rf"(?:{_op(rf'{_MAX}|{_MIN}|{_ABOUT}')})?(?:(?:[₹₽₩₺₪฿₫₴]\s*{_NUMBER})"
    rf"|(?:{_NUMBER}\s*(?:-|–|to|and|bis|und|[àa]|et|y|e|en|tot)\s*)?(?<![0-9.,]){_NUMBER}"
    rf"\s*(?P<foreign>{_UNCONVERTED})(?![^\W_])|{_NUMBER}\s*[₹₽₩₺₪฿₫₴])"
)
_COUNT: Final = _pattern(
    rf"(?<![0-9$€£.,])(?:table for\s+)?{_NUMBER}(?:\s*(?:-|–|to|or)\s*{_NUMBER})?[\s-]*"
    rf"(?:{_COUNTED})"
)
_ABV: Final = _pattern(
    rf"(?:(?P<max>(?<!not )(?<!no ){_op(_MAX)})|(?P<min>{_op(_MIN)})|{_op(_ABOUT)})?"
    rf"(?:(?P<low>{_NUMBER})\s*(?:%\s*)?(?:-|–|to|and)\s*)?(?P<n>{_NUMBER})\s*{_PERCENT}"
)
_RANGE: Final = _pattern(
    r"(?:(?<![^\W_])(?P<between>between|from|zwischen|von|entre|de|tra|fra|da|tussen|van)\s+)?"
    rf"{_money('1')}(?:\s*(?P<dash>-|–|—)\s*|\s+(?P<to>to|bis|[àa]|tot|hasta|fino a)\s+"
    rf"|\s+(?:and|und|et|y|e|en)\s+){_money('2')}"
)
_UPPER: Final = _pattern(rf"(?<!not )(?<!no ){_op(_MAX)}{_money('1')}")
_LOWER: Final = _pattern(rf"{_op(_MIN)}{_money('1')}")
_NEAR: Final = _pattern(rf"{_op(_ABOUT)}{_money('1')}")
_UPPER_AFTER: Final = _pattern(rf"{_money('1')}\s*(?:{_MAX_AFTER})")
_LOWER_AFTER: Final = _pattern(rf"{_money('1')}\s*(?:{_MIN_AFTER})")
_BARE: Final = _pattern(_money("1"))
_CENTS: Final = re.compile(r"[0-9]{1,4}[.,][0-9]{2}")
_LIMIT: Final = _pattern(rf"{_op(rf'{_MAX}|{_MIN}|{_ABOUT}|between|zwischen|entre|tra|tussen')}$")
_FOR: Final = _pattern(r"\b(?:for|für|pour|para|per|voor)\s+$")
_YEAR: Final = re.compile(r"(?<![0-9])(?:19[5-9]|20[0-3])[0-9](?![0-9])")


@dataclass(frozen=True, slots=True)
class Numbers:
    """The limits found in a text; `rest` is the text without them. Alcohol is in % vol.

    `foreign` is a currency that cannot be converted, as written; its amounts are no limits.
    """

    rest: str
    min_price: float | None = None
    max_price: float | None = None
    currency: Currency | None = None
    min_abv: float | None = None
    max_abv: float | None = None
    alcohol_free: bool = False
    years: tuple[str, ...] = ()
    foreign: str = ""


Reader = Callable[[Numbers, re.Match[str]], Numbers | None]


def read_numbers(text: str) -> Numbers:
    """Every limit in a request. Ranges are in order; alcohol limits above 25 are not believed."""
    found = Numbers(rest=text)
    for pattern, read in _READERS:
        found = _take(found, pattern, read)
    years = tuple(dict.fromkeys(_YEAR.findall(found.rest)))
    found = replace(found, years=years, rest=re.sub(r"[0-9]+", " ", found.rest))
    return _in_order(found)


def amounts(text: str) -> list[tuple[float, Currency]]:
    """Every amount with a currency in a text, in order."""
    found = ((to_number(match["n1"]), _currency(match)) for match in _BARE.finditer(text))
    return [(amount, currency) for amount, currency in found if currency]


def is_currency(word: str) -> bool:
    """Whether a word or a sign is a currency that can be converted."""
    return any(re.fullmatch(words, word, re.IGNORECASE) for words in _CURRENCIES.values())


def ends_in_limit(text: str) -> bool:
    """Whether a text ends in a word that sets a limit: "under", "höchstens"."""
    return _LIMIT.search(text) is not None


def to_number(text: str) -> float:
    """`1,200` and `1.200` are twelve hundred; `12,50` and `12.50` twelve and a half."""
    if re.fullmatch(r"[0-9]{1,3}(?:[.,'][0-9]{3})+", text):
        return float(re.sub(r"[.,']", "", text))
    whole, *decimals = re.split(r"[.,']", text)
    return float(f"{whole}.{decimals[0] if decimals else 0}")


def _take(found: Numbers, pattern: re.Pattern[str], read: Reader) -> Numbers:
    """Read all that `pattern` finds; what `read` makes sense of is cut from the rest."""
    text, kept, at = found.rest, [], 0
    for match in pattern.finditer(text):
        if (understood := read(found, match)) is not None:
            found = understood
            kept.append(text[at : match.start()])
            at = match.end()
    return replace(found, rest=" ".join([*kept, text[at:]]))


def _in_order(found: Numbers) -> Numbers:
    prices, alcohol = (found.min_price, found.max_price), (found.min_abv, found.max_abv)
    (low, high), (weak, strong) = _ascending(*prices), _ascending(*alcohol)
    return replace(found, min_price=low, max_price=high, min_abv=weak, max_abv=strong)


def _ascending(low: float | None, high: float | None) -> tuple[float | None, float | None]:
    return (high, low) if low is not None and high is not None and low > high else (low, high)


def _currency(match: re.Match[str], tag: str = "1") -> Currency | None:
    written = match[f"before{tag}"] or match[f"after{tag}"] or ""
    return next(
        (known for known, words in _CURRENCIES.items() if re.fullmatch(words, written, re.I)), None
    )


def _is_year(match: re.Match[str], tag: str = "1") -> bool:
    return _currency(match, tag) is None and _YEAR.fullmatch(match[f"n{tag}"]) is not None


def _count(found: Numbers, match: re.Match[str]) -> Numbers:
    return found


def _alcohol(found: Numbers, match: re.Match[str]) -> Numbers:
    value = to_number(match["n"])
    low = to_number(match["low"]) if match["low"] else None
    if value > 25 or (low or 0) > 25:
        return found
    if low is not None:
        return replace(found, min_abv=low, max_abv=value)
    if match["max"]:
        return replace(found, max_abv=value)
    if match["min"]:
        return replace(found, min_abv=value)
    return replace(found, alcohol_free=found.alcohol_free or value <= 0.5)


def _between(found: Numbers, match: re.Match[str]) -> Numbers | None:
    currency = _currency(match, "1") or _currency(match, "2")
    low, high = to_number(match["n1"]), to_number(match["n2"])
    looks_like_prices = currency or match["between"] or (_is_link(match) and high >= 10)
    if not looks_like_prices or (_is_year(match, "1") and _is_year(match, "2")):
        return None
    return replace(found, min_price=low, max_price=high, currency=currency or found.currency)


def _is_link(match: re.Match[str]) -> bool:
    """Whether two numbers are a range of prices by themselves: "15-20", not "for 10 to 12"."""
    counted = _FOR.search(match.string, 0, match.start())
    return bool(match["dash"] or (match["to"] and not counted))


def _upper(found: Numbers, match: re.Match[str]) -> Numbers:
    currency = _currency(match) or found.currency
    return replace(found, max_price=to_number(match["n1"]), currency=currency)


def _lower(found: Numbers, match: re.Match[str]) -> Numbers | None:
    if _is_year(match):
        return None
    currency = _currency(match) or found.currency
    return replace(found, min_price=to_number(match["n1"]), currency=currency)


def _near(found: Numbers, match: re.Match[str]) -> Numbers | None:
    if _is_year(match):
        return None
    price, currency = to_number(match["n1"]), _currency(match) or found.currency
    low, high = round(price * 0.75, 2), round(price * 1.25, 2)
    return replace(found, min_price=low, max_price=high, currency=currency)


def _bare(found: Numbers, match: re.Match[str]) -> Numbers | None:
    """An amount is a number with a currency, or with cents: "rosé for 12.50"."""
    if _currency(match) is None and not _CENTS.fullmatch(match["n1"]):
        return None
    return found if found.max_price is not None else _upper(found, match)


def _foreign(found: Numbers, match: re.Match[str]) -> Numbers:
    written = match["foreign"] or re.sub(r"[^₹₽₩₺₪฿₫₴]", "", match[0])
    return replace(found, foreign=written)


_READERS: Final[tuple[tuple[re.Pattern[str], Reader], ...]] = (
    (_FOREIGN, _foreign),
    (_ABV, _alcohol),
    (_COUNT, _count),
    (_RANGE, _between),
    (_UPPER, _upper),
    (_UPPER_AFTER, _upper),
    (_LOWER, _lower),
    (_NEAR, _near),
    (_LOWER_AFTER, _lower),
    (_BARE, _bare),
)
