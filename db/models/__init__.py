"""The tables, each in the module of what it is about.

Whoever imports this package has all tables in `Base.metadata`.
"""

from db.models.base import Base, SchemaSupportRow, UtcDateTime, utc_now
from db.models.catalogue import CatalogueVersionRow, ClickRow, OfferRow, WineRow
from db.models.conversations import (
    Access,
    ChatRow,
    ForgottenChatRow,
    MessageRow,
    ReferralRow,
    ReferralState,
    ReservationRow,
    TurnRow,
    Verdict,
)
from db.models.documents import ChunkRow, DocumentRow, LibraryRow
from db.models.people import (
    BottleRow,
    ConcernRow,
    DrinkRow,
    FactRow,
    ForgottenUserRow,
    KeptImportRow,
    ReminderRow,
    SettingRow,
    TasteRatingRow,
    UndoableChangeRow,
)
from db.models.traces import DeletionRow, ExportState, ScoreRow, TraceRow
from db.models.updates import (
    BroadcastRow,
    BroadcastState,
    OutboxRow,
    PressRow,
    UpdateRow,
    UpdateState,
)

__all__ = [
    "Access",
    "Base",
    "BottleRow",
    "BroadcastRow",
    "BroadcastState",
    "CatalogueVersionRow",
    "ChatRow",
    "ChunkRow",
    "ClickRow",
    "ConcernRow",
    "DeletionRow",
    "DocumentRow",
    "DrinkRow",
    "ExportState",
    "FactRow",
    "ForgottenChatRow",
    "ForgottenUserRow",
    "KeptImportRow",
    "LibraryRow",
    "MessageRow",
    "OfferRow",
    "OutboxRow",
    "PressRow",
    "ReferralRow",
    "ReferralState",
    "ReminderRow",
    "ReservationRow",
    "SchemaSupportRow",
    "ScoreRow",
    "SettingRow",
    "TasteRatingRow",
    "TraceRow",
    "TurnRow",
    "UndoableChangeRow",
    "UpdateRow",
    "UpdateState",
    "UtcDateTime",
    "Verdict",
    "WineRow",
    "utc_now",
]
