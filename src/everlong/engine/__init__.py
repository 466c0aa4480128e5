"""Prepares every request of a conversation. Pure functions for those who hold their own messages."""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.engine.accounts import account_in as account_in, account_of as account_of
    from everlong.engine.authors import Author as Author
    from everlong.engine.beside import with_beside as with_beside, without_tail as without_tail
    from everlong.engine.caching import breakpoints as breakpoints
    from everlong.engine.calls import Call as Call, Prepared as Prepared
    from everlong.engine.committing import SUMMARY as SUMMARY, Outcome as Outcome
    from everlong.engine.conversing import converse as converse
    from everlong.engine.direct import count as count, counter_for as counter_for, forget_counts as forget_counts
    from everlong.engine.due import chatbox_mark as chatbox_mark
    from everlong.engine.engine import Engine as Engine
    from everlong.engine.fitting import SENT_AS as SENT_AS, Fitted as Fitted, fit as fit, fit_document as fit_document
    from everlong.engine.growing import copied as copied
    from everlong.engine.interfaces import (
        Assembler as Assembler,
        Compressor as Compressor,
        Provider as Provider,
        assemble as assemble,
    )
    from everlong.engine.learning import calibration_of as calibration_of, learned_window as learned_window
    from everlong.engine.ledger import Spent as Spent, spent_on as spent_on
    from everlong.engine.live import refreshed as refreshed
    from everlong.engine.marks import low_mark as low_mark
    from everlong.engine.means import Observer as Observer
    from everlong.engine.nanobot_settings import NanobotSettings as NanobotSettings
    from everlong.engine.observing import logs_events as logs_events, traces_events as traces_events
    from everlong.engine.outlooks import (
        SMALLEST as SMALLEST,
        Outlook as Outlook,
        outlook as outlook,
        outlook_of as outlook_of,
    )
    from everlong.engine.past import LEFT_BEFORE as LEFT_BEFORE
    from everlong.engine.preparing import prepared_from as prepared_from, standing as standing
    from everlong.engine.previewing import Preview as Preview
    from everlong.engine.recalling import Found as Found
    from everlong.engine.recording import cost_of as cost_of
    from everlong.engine.replies import (
        Caching as Caching,
        CallGrew as CallGrew,
        Failed as Failed,
        Finished as Finished,
        Model as Model,
        Reply as Reply,
        Request as Request,
        Restarted as Restarted,
        Said as Said,
        Thought as Thought,
    )
    from everlong.engine.settings import (
        DEFAULT_SETTINGS as DEFAULT_SETTINGS,
        DEFAULT_THRESHOLD as DEFAULT_THRESHOLD,
        HIGHEST_THRESHOLD as HIGHEST_THRESHOLD,
        LOWEST_THRESHOLD as LOWEST_THRESHOLD,
        Mode as Mode,
        Settings as Settings,
        Summarizing as Summarizing,
    )
    from everlong.engine.summaries import Summaries as Summaries
    from everlong.engine.threads import Threads as Threads
    from everlong.engine.titles import (
        call_title as call_title,
        message_title as message_title,
        text_title as text_title,
    )
    from everlong.engine.titling import Titles as Titles
    from everlong.engine.token_map import (
        FRAMING as FRAMING,
        MessageWeight as MessageWeight,
        RoundWeight as RoundWeight,
        TokenMap as TokenMap,
        map_tokens as map_tokens,
    )
    from everlong.engine.turns import Turn as Turn
    from everlong.engine.view import View as View, Wish as Wish, view_of as view_of
    from everlong.engine.wholeness import whole as whole
    from everlong.engine.work import work_on as work_on
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "accounts": "account_in account_of",
            "authors": "Author",
            "beside": "with_beside without_tail",
            "caching": "breakpoints",
            "calls": "Call Prepared",
            "committing": "Outcome SUMMARY",
            "conversing": "converse",
            "direct": "count counter_for forget_counts",
            "due": "chatbox_mark",
            "engine": "Engine",
            "fitting": "Fitted SENT_AS fit fit_document",
            "growing": "copied",
            "interfaces": "Assembler Compressor Provider assemble",
            "learning": "calibration_of learned_window",
            "ledger": "Spent spent_on",
            "live": "refreshed",
            "marks": "low_mark",
            "means": "Observer",
            "nanobot_settings": "NanobotSettings",
            "observing": "logs_events traces_events",
            "outlooks": "Outlook SMALLEST outlook outlook_of",
            "past": "LEFT_BEFORE",
            "preparing": "prepared_from standing",
            "previewing": "Preview",
            "recalling": "Found",
            "recording": "cost_of",
            "replies": "Caching CallGrew Failed Finished Model Reply Request Restarted Said Thought",
            "settings": "DEFAULT_SETTINGS DEFAULT_THRESHOLD HIGHEST_THRESHOLD LOWEST_THRESHOLD Mode Settings Summarizing",
            "summaries": "Summaries",
            "threads": "Threads",
            "titles": "call_title message_title text_title",
            "titling": "Titles",
            "token_map": "FRAMING MessageWeight RoundWeight TokenMap map_tokens",
            "turns": "Turn",
            "view": "View Wish view_of",
            "wholeness": "whole",
            "work": "work_on",
        },
    )
