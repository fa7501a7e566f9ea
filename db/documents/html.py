"""HTML as blocks of plain text: what a page is about, as a reader sees it. Pure.

What nobody sees is left out first: by its element, its attributes, and its style, of which a CSS
parser reads what the page itself declares. Of the rest trafilatura finds the main content; where it
leaves much behind, all of the page is taken. The parsers are heavy: import this where a page is
read.
"""

from collections.abc import Iterator, Mapping, Sequence
from configparser import ConfigParser
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, NamedTuple

import cssselect2
import tinycss2
import trafilatura
from lxml import etree, html
from tinycss2.color3 import RGBA, parse_color
from trafilatura.settings import DEFAULT_CONFIG

from agent.text import pattern
from db.documents.chunking import Block, Outline, outline

UNSEEN: Final = frozenset(
    "aside audio button canvas datalist dialog head iframe input map menu nav noscript object "
    "option script select style svg template textarea title video".split()
)
UNSEEN_ROLES: Final = frozenset(
    "alert alertdialog banner complementary contentinfo dialog menu menubar navigation search "
    "tooltip".split()
)
AROUND: Final = pattern(
    r"(?i)\b(?:cookie|consent|gdpr|newsletter|breadcrumbs?|sidebar|skip-link|social-?share)"
)
"""What the id or a class of an element says that stands around what a page is about."""
UNSEEN_CLASSES: Final = frozenset(
    "hidden visually-hidden visuallyhidden sr-only screen-reader-text d-none hide".split()
)
"""Classes by which the usual style sheets, which are not at hand, hide an element."""
BLOCKS: Final = frozenset(
    "body address article blockquote caption center code dd details div dl dt fieldset figcaption "
    "figure footer form h1 h2 h3 h4 h5 h6 head header hr html item li list main ol p pre quote "
    "section summary table ul".split()
)
"""Elements of HTML, and those by which trafilatura names them."""
WHOLE: Final = frozenset({"html", "body"})
LINES: Final = {"br": "\n", "lb": "\n", "tr": "\n", "row": "\n"}
CELLS: Final = frozenset({"td", "th", "cell"})
HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
LEAST_SHARE: Final = 0.6
"""Of the words of the core of a page: with fewer, a part was taken for the whole."""
LEAST_LINKS: Final = 5
MENU_SHARE: Final = 0.8
"""How many of the words of a block are links where it is a menu."""
FAR: Final = 300.0
"""Pixels outside of the page at which nothing is seen any more."""
LEAST_OPACITY: Final = 0.05
LEAST_PIXELS: Final = 1.0
LEAST_CONTRAST: Final = 0.06
"""Of each colour from 0 to 1."""
MOST_CSS: Final = 300_000
IN_PIXELS: Final = {"px": 1.0, "pt": 4 / 3, "cm": 37.8, "mm": 3.78, "in": 96.0, "pc": 16.0}
IN_FONTS: Final = {"em": 1.0, "rem": 1.0, "ex": 0.5, "ch": 0.5, "vw": 12.8, "vh": 8.0}

BLACK: Final = RGBA(0, 0, 0, 1)
WHITE: Final = RGBA(1, 1, 1, 1)

Declared = Mapping[str, Sequence[Any]]
"""The tokens of each property of an element, by its name."""


def read_html(source: str) -> Outline:
    """Return the outline of a page: its main content, nothing hidden."""
    root = _parsed(source)
    title = " ".join(root.findtext(".//title", "").split())
    _leave_seen(root)
    return outline(_main(root), title)


def html_blocks(source: str) -> list[Block]:
    """Return all blocks of a page or of a part of one, nothing hidden."""
    root = _parsed(source)
    _leave_seen(root)
    return list(_blocks(root))


def _parsed(source: str) -> Any:
    parser = html.HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True
    )
    data = source.encode("utf-8", "replace")
    root = etree.fromstring(data, parser) if source.strip() else None
    return html.Element("html") if root is None else root


def _main(root: Any) -> list[Block]:
    """The blocks of the page's core, where it tells which that is.

    Else those from the first to the last that trafilatura finds, with the headings above; all of
    them where it leaves much behind.
    """
    cores = root.findall(".//main") or root.findall(".//article")
    core = cores[0] if len(cores) == 1 else root
    main = _found_main(root) if core is root else set()
    for menu in _menus(core):
        menu.drop_tree()
    every = list(_blocks(core))
    places = [at for at, block in enumerate(every) if not main.isdisjoint(_lines(block))]
    if not places:
        return every
    first, last = places[0], places[-1]
    while first and every[first - 1].level:
        first -= 1
    chosen = every[first : last + 1]
    said, told = (sum(len(each.text.split()) for each in blocks) for blocks in (chosen, every))
    return chosen if said >= LEAST_SHARE * told else every


def _found_main(root: Any) -> set[str]:
    """The lines that trafilatura takes for what the page is about."""
    try:
        found = trafilatura.bare_extraction(
            etree.fromstring(etree.tostring(root), html.HTMLParser(encoding="utf-8")),
            fast=True,
            favor_recall=True,
            include_comments=False,
            with_metadata=False,
            config=_config(),
        )
    except Exception:
        return set()  # it meets whatever people have on their disks
    body = getattr(found, "body", None)
    return set() if body is None else {line for each in _blocks(body) for line in _lines(each)}


def _lines(block: Block) -> Iterator[str]:
    for line in block.text.split("\n"):
        if said := "".join(filter(str.isalnum, line)):
            yield said


@cache
def _config() -> ConfigParser:
    """Of trafilatura: a short page is no reason to take all its text as one paragraph."""
    config = deepcopy(DEFAULT_CONFIG)
    config["DEFAULT"].update({"MIN_EXTRACTED_SIZE": "0", "MIN_OUTPUT_SIZE": "0"})
    return config


def _menus(core: Any) -> list[Any]:
    """The blocks below the core that are little but links; counted from the innermost outwards."""
    found: list[Any] = []
    counts: dict[Any, tuple[int, int, int]] = {}
    for _, node in etree.iterwalk(core, events=("end",)):
        inside = [counts.pop(child) for child in node]
        words, linked, links = (sum(each) for each in zip((0, 0, 0), *inside, strict=True))
        words += len((node.text or "").split())
        if node.tag == "a":
            linked, links = words, 1
        is_menu = links >= LEAST_LINKS and linked >= MENU_SHARE * words
        if is_menu and node.tag in BLOCKS and node is not core:
            found.append(node)
            words = linked = links = 0
        counts[node] = words + len((node.tail or "").split()), linked, links
    return found


def _blocks(root: Any) -> Iterator[Block]:
    """Paragraphs and headings in order; iterative, as HTML may be nested without end."""
    texts: list[str] = []
    around: list[Any] = [root]
    tables = 0
    for event, node in etree.iterwalk(root, events=("start", "end")):
        name, starts = node.tag, event == "start"
        if name in BLOCKS and (not tables or name == "table"):
            yield from _block(around[-1], texts)
            texts = []
            around.append(node) if starts else around.pop()
        tables += (name == "table") * (1 if starts else -1)
        if starts and name in LINES:
            texts.append(LINES[name])
        elif starts and name in CELLS:
            texts.append(" | ")
        said = node.text if starts else node.tail if node is not root else None
        if said:
            texts.append(said if around[-1].tag in {"pre", "code"} else _spaced(said))


def _spaced(text: str) -> str:
    """A text with one space for all white space between words, and at its ends."""
    first, last = (" " * end.isspace() for end in (text[:1], text[-1:]))
    return f"{first}{' '.join(text.split())}{last}" if text.strip() else " "


def _block(node: Any, texts: Sequence[str]) -> Iterator[Block]:
    text = "".join(texts)
    level = HEADINGS.get(node.get("rend", "h2") if node.tag == "head" else node.tag, 0)
    if level:
        text = " ".join(text.split()).strip(" |")
    elif node.tag not in {"pre", "code"}:
        lines = (" ".join(line.split()).strip(" |") for line in text.split("\n"))
        text = "\n".join(lines).strip("\n")
    if text.strip():
        yield Block(text, level)


@dataclass(frozen=True, slots=True)
class _Look:
    """How the text of an element looks; the colours are None where the page does not tell them."""

    pixels: float = 16.0
    visible: bool = True
    colour: RGBA | None = BLACK
    background: RGBA | None = WHITE
    indent: float = 0.0

    @property
    def is_seen(self) -> bool:
        """Whether somebody can read it."""
        return (
            self.visible
            and self.pixels > LEAST_PIXELS
            and self.indent > -FAR
            and not _alike(self.colour, self.background)
        )


def _alike(colour: RGBA | None, background: RGBA | None) -> bool:
    if colour is not None and colour.alpha <= LEAST_OPACITY:
        return True
    if colour is None or background is None:
        return False
    pairs = zip(colour[:3], background[:3], strict=True)
    return all(abs(one - other) <= LEAST_CONTRAST for one, other in pairs)


def _leave_seen(root: Any) -> None:
    """Take everything out of a page that no reader sees, or that stands around what it is about."""
    sheets = [style.text or "" for style in root.iter("style")]
    styled = any("stylesheet" in link.get("rel", "").lower() for link in root.iter("link"))
    declared = _declared(root, "\n".join(sheets)[:MOST_CSS])
    # Where style sheets are not at hand, a colour says nothing of the one that it stands on.
    unknown = _Look(colour=None, background=None) if styled else _Look()
    looks = {None: unknown}
    gone: list[Any] = []
    has_core = root.find(".//main") is not None or root.find(".//article") is not None
    for node in root.iter(etree.Element):
        look = looks.get(node.getparent(), unknown)
        style = _style(node, declared.get(node, ()))
        # A whole page that begins unseen is shown by its script.
        if node.tag not in WHOLE and (_is_unseen(node, has_core) or _is_away(style, look)):
            gone.append(node)
        looks[node] = look = _look(style, look)
        if not look.is_seen:
            node.text = None
            for child in node:
                child.tail = None
    for node in gone:
        node.drop_tree()


def _is_unseen(node: Any, has_core: bool) -> bool:
    name, role = node.tag, node.get("role", "").lower()
    if name in UNSEEN or role in UNSEEN_ROLES or node.get("hidden") is not None:
        return bool(name != "main")
    if str(node.get("aria-hidden")).lower() == "true":
        return True
    if name in {"main", "article"}:
        return False
    named = f"{node.get('id', '')} {node.get('class', '')}"
    if AROUND.search(named.replace("_", "-")) or not UNSEEN_CLASSES.isdisjoint(named.split()):
        return True
    # Head and foot of a site stand on each of its pages; those of an article are its own.
    return bool(has_core and name in {"header", "footer"} and _is_of_site(node))


def _is_of_site(node: Any) -> bool:
    inside = any(each.tag in {"main", "article"} for each in node.iterancestors())
    return not inside and node.find(".//main") is None and node.find(".//article") is None


def _declared(root: Any, sheet: str) -> dict[Any, list["_Rule"]]:
    """What the style sheets of the page declare for its elements."""
    if not sheet.strip():
        return {}
    matcher = cssselect2.Matcher()
    for rule in _rules(tinycss2.parse_stylesheet(sheet, True, True)):
        told = _rule(rule.content)
        if any(told):
            try:
                selectors = cssselect2.compile_selector_list(rule.prelude)
            except cssselect2.SelectorError:
                continue
            for selector in selectors:
                if selector.pseudo_element is None:
                    matcher.add_selector(selector, told)
    found: dict[Any, list[_Rule]] = {}
    for element in cssselect2.ElementWrapper.from_html_root(root).iter_subtree():
        matches = sorted(matcher.match(element), key=lambda match: match[:2])
        if matches:
            found[element.etree_element] = [told for *_, told in matches]
    return found


def _style(node: Any, rules: Sequence["_Rule"]) -> Declared:
    """What holds for an element: its attributes, style sheets, its own style; first the least."""
    inline = node.get("style")
    told = [*rules, *([_rule(inline[:MOST_CSS])] if inline else [])]
    style = _attributes(node)
    for rule in told:
        style |= rule.usual
    for rule in told:
        style |= rule.important
    return style


def _rules(rules: Sequence[Any]) -> Iterator[Any]:
    """Rules that hold on a screen."""
    for rule in rules:
        if rule.type == "qualified-rule":
            yield rule
        elif rule.type == "at-rule" and rule.lower_at_keyword == "media" and rule.content:
            medium = tinycss2.serialize(rule.prelude).strip().lower()
            if medium in {"", "all", "screen", "only screen"}:
                inner = tinycss2.parse_rule_list(rule.content, True, True)
                yield from (each for each in inner if each.type == "qualified-rule")


def _attributes(node: Any) -> dict[str, Sequence[Any]]:
    """Colours as old pages give them."""
    told = {"background-color": node.get("bgcolor")}
    if node.tag == "font":
        told["color"] = node.get("color")
    if node.tag == "body":
        told["color"] = node.get("text")
    return {name: _tokens(value) for name, value in told.items() if value}


def _tokens(value: str) -> Sequence[Any]:
    found: Sequence[Any] = tinycss2.parse_component_value_list(value)
    return found


class _Rule(NamedTuple):
    """What one place declares."""

    usual: dict[str, Sequence[Any]]
    important: dict[str, Sequence[Any]]


def _rule(content: Any) -> _Rule:
    found = _Rule({}, {})
    for each in tinycss2.parse_blocks_contents(content, True, True):
        if each.type == "declaration":
            tokens = [token for token in each.value if token.type != "whitespace"]
            (found.important if each.important else found.usual)[each.lower_name] = tokens
    return found


def _word(style: Declared, name: str) -> str:
    tokens = style.get(name) or ()
    return str(getattr(tokens[0], "lower_value", "")) if tokens else ""


def _lengths(tokens: Sequence[Any], pixels: float) -> list[float]:
    """The lengths in pixels among tokens, in functions too."""
    found: list[float] = []
    for token in tokens:
        if token.type == "dimension":
            unit = token.lower_unit
            found.append(token.value * IN_PIXELS.get(unit, IN_FONTS.get(unit, 0.0) * pixels))
        elif token.type in {"number", "percentage"}:
            found.append(token.value * (1.0 if token.type == "number" else 10.0))
        elif token.type == "function":
            found += _lengths(token.arguments, pixels)
    return found


def _is_away(style: Declared, look: _Look) -> bool:
    """Whether an element is not on the page, with all that it holds."""
    if _word(style, "display") == "none" or _word(style, "content-visibility") == "hidden":
        return True
    opacity = style.get("opacity")
    if opacity and opacity[0].type in {"number", "percentage"}:
        scale = 1.0 if opacity[0].type == "number" else 100.0
        if opacity[0].value / scale <= LEAST_OPACITY:
            return True
    return _is_outside(style, look.pixels) or _is_clipped(style, look.pixels)


def _is_outside(style: Declared, pixels: float) -> bool:
    names = ["margin-left", "margin-top", "transform", "translate"]
    if _word(style, "position") in {"absolute", "fixed", "relative"}:
        names += ["left", "top", "right", "bottom", "inset"]
    return any(
        length <= -FAR for name in names for length in _lengths(style.get(name) or (), pixels)
    )


def _is_clipped(style: Declared, pixels: float) -> bool:
    for token in style.get("transform") or ():
        if token.type == "function" and token.lower_name.startswith("scale"):
            scales = [each.value for each in token.arguments if each.type == "number"]
            if scales and min(map(abs, scales)) <= LEAST_OPACITY:
                return True
    if _word(style, "position") in {"absolute", "fixed"} and _is_nothing(style, "clip", pixels):
        return True
    for token in style.get("clip-path") or ():
        if token.type == "function":
            shares = [each.value for each in token.arguments if each.type == "percentage"]
            if token.lower_name == "inset" and shares and min(shares) >= 50:
                return True
            if token.lower_name == "circle" and _lengths(token.arguments, pixels)[:1] == [0.0]:
                return True
    if _word(style, "overflow") in {"hidden", "clip"}:
        sizes = ("width", "height", "max-width", "max-height")
        return any(_is_nothing(style, name, pixels) for name in sizes)
    return False


def _is_nothing(style: Declared, name: str, pixels: float) -> bool:
    lengths = _lengths(style.get(name) or (), pixels)
    return bool(lengths) and all(abs(each) <= LEAST_PIXELS for each in lengths)


def _look(style: Declared, around: _Look) -> _Look:
    """How an element looks within one that looks like `around`."""
    look = around
    if size := style.get("font-size"):
        look = replace(look, pixels=_font_size(size[0], around.pixels))
    if visibility := _word(style, "visibility"):
        look = replace(look, visible=visibility not in {"hidden", "collapse"})
    if indent := _lengths(style.get("text-indent") or (), look.pixels):
        look = replace(look, indent=indent[0])
    if "color" in style:
        look = replace(look, colour=_colour(style["color"], look.colour))
    for name in ("background", "background-color"):
        if tokens := style.get(name):
            look = replace(look, background=_background(tokens, look.background))
    return look


def _font_size(token: Any, pixels: float) -> float:
    if token.type == "percentage":
        return float(token.value) * pixels / 100
    lengths = _lengths([token], pixels)
    return lengths[0] if lengths else max(pixels, 10.0)


def _colour(tokens: Sequence[Any], before: RGBA | None) -> RGBA | None:
    found = parse_color(tokens[0]) if tokens else None
    return found if isinstance(found, RGBA) else before


def _background(tokens: Sequence[Any], before: RGBA | None) -> RGBA | None:
    """The colour behind the text; None for a picture or a gradient."""
    if any(token.type in {"url", "function"} and parse_color(token) is None for token in tokens):
        return None
    found = next(filter(None, map(parse_color, tokens)), None)
    return found if isinstance(found, RGBA) and found.alpha > LEAST_OPACITY else before
