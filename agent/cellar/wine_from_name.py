"""Make a wine of a name alone, with what its grape or region implies."""

from typing import Any

from agent.query_reading.request import Request, read_request
from agent.query_reading.tables import Profile, find_profile, load_profiles
from agent.sommelier.vocabulary import Style, normalize
from agent.sommelier.wine import Wine


def wine_from_name(
    name: str, id: str, style: Style | None = None, **attributes: Any
) -> Wine | None:
    """Return a wine with the attributes that its name implies, or None if its style is unknown.

    `style` and `attributes` override what the name implies.
    """
    request = read_request(name)
    profile = _find_profile_in(name, request)
    style_name = style or _implied_style(request, profile)
    if style_name is None:
        return None
    grapes = request.values("grapes")
    if profile is not None and not grapes:
        grapes = profile.grapes
    implied: dict[str, Any] = {
        "id": id,
        "producer": "",
        "name": name,
        "style": Style(style_name),
        "country": _first_value(request, "countries") or "",
        "region": _first_value(request, "regions") or "",
        "grapes": grapes,
        "sweetness": _first_value(request, "sweetness"),
    }
    if profile is not None and profile.style == style_name:
        implied["body"] = profile.body
        implied["tannin"] = profile.tannin
        implied["acidity"] = profile.acidity
    return Wine(**implied | attributes)


def _implied_style(request: Request, profile: Profile | None) -> str | None:
    """Return the style that a name states, or that is typical of its grape or region, or None."""
    stated_style = _first_value(request, "styles")
    if stated_style is None and profile is not None:
        return profile.style
    return stated_style


def _first_value(request: Request, name: str) -> str | None:
    """Return the first value of a list filter, or None if there is none."""
    values = request.values(name)
    if not values:
        return None
    return values[0]


def _find_profile_in(name: str, request: Request) -> Profile | None:
    """Return the profile of the region or the grape that a wine's name has, or None."""
    names = [*request.values("regions"), *request.values("grapes")]
    padded_name = f" {normalize(name)} "
    for profile_name in load_profiles():
        # The spaces keep a profile from being found within a word.
        if f" {normalize(profile_name)} " in padded_name:
            names.append(profile_name)
    return find_profile(names)
