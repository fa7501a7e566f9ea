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
/ask *what does sur lie mean?* – an answer from our documents, with its sources; \
/ask --refine … rewords the question first
/quotes *malolactic fermentation* – what our documents say, word for word
/find *wine bar Lyon* – wine shops, bars, wineries, tastings, restaurants and courses somewhere; \
a location works as the place
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
ASK_USAGE: Final = "What shall I look up? For example: /ask what does sur lie mean?"
QUOTES_USAGE: Final = "What shall I look for, word for word? For example: /quotes noble rot"
FIND_USAGE: Final = (
    "What shall I look for, and where? For example: /find wine bar Lyon. I know wine shops, wine "
    "bars, wineries, tastings, restaurants and courses."
)
FIND_WHERE: Final = (
    "Where shall I look for a {what}? Write for example /find {what} Lyon, or send me a location."
)
QUESTION_TOO_LONG: Final = "That is too long for me to look up. Please ask in 1000 characters."
PLACE_TOO_LONG: Final = "I don't recognise that as a place. A town, a district or a region is best."
NO_QUERIES: Final = (
    "I could not work out good searches for that place, I am sorry. Please name it more precisely, "
    "or try again in a moment."
)
NO_DOCUMENTS: Final = "There are no documents here yet, so I have nothing to look that up in."
BUTTON_TOO_OLD: Final = "That button is too old. Please send your question once more."
FAILED: Final = "Something went wrong on my side, I am sorry. Please ask me again in a moment."

NOT_LET_IN: Final = (
    "I only talk with people who were introduced to me. Please give your id to whoever runs me. "
    "Your id is {id}."
)
ACCESS_UNKNOWN: Final = (
    "I cannot find out right now whether I may answer you, I am sorry. Please try again in a "
    "moment."
)
ASKS_TO_BE_LET_IN: Final = "{name} ({id}) asks to be let in."
LET_IN: Final = "You are let in now. What would you like to drink?"

ALLOWED: Final = "{id} is let in."
BLOCKED: Final = "{id} is blocked and gets no answer any more."
ADMIN_STAYS: Final = "{id} is an admin, whom nobody can block."
WHOM: Final = (
    "Whom? Write for example /{command} 12345, or /{command} alone as a reply to a message of "
    "theirs. I know people by their ids only, not by their @names."
)
STATS_IN_PRIVATE: Final = "The figures are not for a group. Ask me for /stats in private."
NOTHING_TO_TRACE: Final = "I know of no turn that could be meant. Reply to an answer of mine."
NOT_TRACED: Final = "This turn was not traced, or its trace is gone."
BROADCAST_USAGE: Final = (
    "What shall I tell everyone? Write for example /broadcast We are closed on Monday, or reply "
    "to a message that says it."
)
BROADCAST_PREVIEW: Final = "That is how it looks. Send to {chats}?"
BROADCAST_TO_NOBODY: Final = "There is no private chat that I could send this to."
BROADCAST_OVER: Final = "This message was already sent or cancelled."
BROADCAST_CANCELLED: Final = "Cancelled: nobody got it."
BROADCAST_DONE: Final = "Sent to {sent}, {failed} failed."

ADMIN_COMMANDS: Final = (
    ("stats", "Today and 7 days: people, turns, cost …"),
    ("trace", "What happened in a turn (reply to an answer)"),
    ("allow", "Let somebody in"),
    ("block", "Keep somebody out"),
    ("broadcast", "Tell everyone something"),
)
"""The commands that only admins have."""

COMMANDS: Final = (
    ("ask", "An answer from our documents, with sources"),
    ("quotes", "What our documents say, word for word"),
    ("find", "Wine shops, bars, wineries … somewhere"),
    ("new", "Forget our conversation and start afresh"),
    ("help", "What you can ask"),
)
"""The commands that Telegram shows in its menu."""
