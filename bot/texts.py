"""The sentences that the bot itself says; Markdown, like the model's."""

from typing import Final

GREETING: Final = """\
Hello! I am your sommelier. Tell me what you eat, what you like or what you want to spend, and I \
look for a bottle in our cellar.

For example:
- something red for lamb, under 25 euros
- a sparkling under 30 for oysters
- a light white from Italy

/help says more."""

HELP: Final = """\
**What you can ask**
- a wine for a dish: *what goes with mushroom risotto?*
- a wine you describe: *a dry Riesling from Germany, 15 to 25 euros*
- more like one you know: *something like the first, but cheaper*

I only recommend wines from our cellar. Prices are indicative.

**Commands**
/new – forget our conversation and start afresh
/help – this text"""

FORGOTTEN: Final = "I have forgotten our conversation. What would you like to drink?"
NOTHING_TO_FORGET: Final = "There is nothing to forget yet. What would you like to drink?"
UNKNOWN_COMMAND: Final = "I don't know that command. /help shows what I can do."
TEXT_ONLY: Final = "I can only read text so far. Please tell me in words what you are looking for."
EMPTY: Final = "Your message has no words in it. What kind of wine are you looking for?"
EDITED: Final = "I only go back to your last message. Please send this one again as a new one."
SET_ASIDE: Final = (
    "I could not process your message, I am sorry, and have set it aside for the people who run me."
)
FAILED: Final = "Something went wrong on my side, I am sorry. Please ask me again in a moment."

COMMANDS: Final = (
    ("new", "Forget our conversation and start afresh"),
    ("help", "What you can ask"),
)
"""The commands that Telegram shows in its menu."""
