"""The engine: prepares every request of a conversation, learns from every answer, and recovers from every refusal.

`Engine` works on threads in a store; `fit` and `count` work on messages that you keep yourself. `converse` is one turn;
`Summaries` and `Titles` write in the background. The engine decides what is sent and explains it. It knows nothing
about HTTP, databases or user interfaces: stores and models are contracts here (`Threads`, `Model`) that other packages
implement.
"""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.engine.budget import (
        Anchor as Anchor,
        calibration_of as calibration_of,
        counter_for as counter_for,
        learned_window as learned_window,
    )
    from everlong.engine.contracts import (
        Call as Call,
        CallGrew as CallGrew,
        Failed as Failed,
        Finished as Finished,
        Model as Model,
        Prepared as Prepared,
        Provider as Provider,
        Reply as Reply,
        Request as Request,
        Restarted as Restarted,
        Said as Said,
        Thought as Thought,
        Threads as Threads,
        ToolLike as ToolLike,
        breakpoints as breakpoints,
    )
    from everlong.engine.engine import Busy as Busy, Engine as Engine
    from everlong.engine.events import (
        ASSEMBLED as ASSEMBLED,
        CUT_NEAR as CUT_NEAR,
        Observer as Observer,
        logs_events as logs_events,
        traces_events as traces_events,
        window_hint as window_hint,
    )
    from everlong.engine.functions import (
        Function as Function,
        Signature as Signature,
        ToolFunction as ToolFunction,
        checked as checked,
        tool_function as tool_function,
    )
    from everlong.engine.histories.counts import count as count, forget_counts as forget_counts
    from everlong.engine.histories.fitted import Fitted as Fitted, fit as fit, fit_document as fit_document
    from everlong.engine.histories.sizes import FAR as FAR, Sizes as Sizes
    from everlong.engine.preview import (
        SMALLEST as SMALLEST,
        Meter as Meter,
        Preview as Preview,
        outlook as outlook,
        outlook_of as outlook_of,
    )
    from everlong.engine.raw_history import LEFT_BEFORE as LEFT_BEFORE
    from everlong.engine.recall.request import (
        MOST_RECALLED as MOST_RECALLED,
        RECALL as RECALL,
        RecallResult as RecallResult,
    )
    from everlong.engine.recovery import may_recover as may_recover
    from everlong.engine.requests.due import Due as Due, due_at as due_at, first_due as first_due
    from everlong.engine.settings import (
        DEFAULT_SETTINGS as DEFAULT_SETTINGS,
        HIGHEST_THRESHOLD as HIGHEST_THRESHOLD,
        LOWEST_THRESHOLD as LOWEST_THRESHOLD,
        SETTINGS as SETTINGS,
        SURFACE_DEFAULTS as SURFACE_DEFAULTS,
        Mode as Mode,
        Settings as Settings,
        Summarizing as Summarizing,
        defaults_of as defaults_of,
        operator_settings as operator_settings,
        read_settings as read_settings,
        read_variables as read_variables,
        unused_settings as unused_settings,
        variable_named as variable_named,
        variables_of as variables_of,
    )
    from everlong.engine.summaries.author import Author as Author, expect_authors as expect_authors
    from everlong.engine.summaries.carriage import Background as Background, Carried as Carried, Taken as Taken
    from everlong.engine.summaries.commit import SUMMARY as SUMMARY, Outcome as Outcome
    from everlong.engine.summaries.schedule import Summaries as Summaries
    from everlong.engine.summaries.titles import Titles as Titles
    from everlong.engine.thread import (
        left_by as left_by,
        newest_summary as newest_summary,
        summary_in as summary_in,
    )
    from everlong.engine.token_map import (
        FRAMING as FRAMING,
        MessageWeight as MessageWeight,
        RoundWeight as RoundWeight,
        TokenMap as TokenMap,
        call_title as call_title,
        map_tokens as map_tokens,
        message_title as message_title,
        text_title as text_title,
    )
    from everlong.engine.turn import (
        PartialAnswer as PartialAnswer,
        Turn as Turn,
        converse as converse,
        run_function as run_function,
        value_text as value_text,
        whole as whole,
    )
    from everlong.engine.usage import (
        FOR_SUMMARIES as FOR_SUMMARIES,
        Saved as Saved,
        Savings as Savings,
        Spared as Spared,
        Spent as Spent,
        anchor_at as anchor_at,
        cached_in as cached_in,
        calls_in as calls_in,
        cost_of as cost_of,
        saved_on as saved_on,
        spent_on as spent_on,
    )
    from everlong.engine.view import View as View, ViewOptions as ViewOptions, view_of as view_of
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "budget": "Anchor calibration_of counter_for learned_window",
            "contracts": "Call CallGrew Failed Finished Model Prepared Provider Reply Request "
            "Restarted Said Thought Threads ToolLike breakpoints",
            "engine": "Busy Engine",
            "events": "ASSEMBLED CUT_NEAR Observer logs_events traces_events window_hint",
            "functions": "Function Signature ToolFunction checked tool_function",
            "histories.counts": "count forget_counts",
            "histories.fitted": "Fitted fit fit_document",
            "histories.sizes": "FAR Sizes",
            "preview": "Meter Preview SMALLEST outlook outlook_of",
            "raw_history": "LEFT_BEFORE",
            "recall.request": "MOST_RECALLED RECALL RecallResult",
            "recovery": "may_recover",
            "requests.due": "Due due_at first_due",
            "settings": "DEFAULT_SETTINGS HIGHEST_THRESHOLD LOWEST_THRESHOLD Mode SETTINGS "
            "SURFACE_DEFAULTS Settings Summarizing defaults_of operator_settings read_settings read_variables unused_settings "
            "variable_named variables_of",
            "summaries.author": "Author expect_authors",
            "summaries.carriage": "Background Carried Taken",
            "summaries.commit": "Outcome SUMMARY",
            "summaries.schedule": "Summaries",
            "summaries.titles": "Titles",
            "thread": "left_by newest_summary summary_in",
            "token_map": "FRAMING MessageWeight RoundWeight TokenMap call_title map_tokens message_title text_title",
            "turn": "PartialAnswer Turn converse run_function value_text whole",
            "usage": "FOR_SUMMARIES Saved Savings Spared Spent anchor_at cached_in calls_in cost_of saved_on spent_on",
            "view": "View ViewOptions view_of",
        },
    )
