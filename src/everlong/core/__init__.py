"""The values of a conversation: messages, rounds, budgets, edits, compaction points, threads and events.

It uses only the standard library: no clock, no randomness, no I/O. It knows nothing about providers, stores or models.
"""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.core.arguments import (
        expect as expect,
        expect_function as expect_function,
        expect_list as expect_list,
        expect_number as expect_number,
        expect_text as expect_text,
    )
    from everlong.core.budget import (
        SMALLEST_REPLY as SMALLEST_REPLY,
        Budget as Budget,
        clamp_reply as clamp_reply,
        reply_budget as reply_budget,
        session_budget as session_budget,
        token_count as token_count,
    )
    from everlong.core.encoding import (
        Ref as Ref,
        bytes_of as bytes_of,
        decode as decode,
        encode as encode,
        encode_all as encode_all,
        message_ref as message_ref,
        original_in as original_in,
        part_content as part_content,
        part_ref as part_ref,
        ref_of as ref_of,
    )
    from everlong.core.events import (
        OUTCOMES as OUTCOMES,
        STARTS as STARTS,
        Event as Event,
        EventKind as EventKind,
        starts as starts,
    )
    from everlong.core.imports import function_named as function_named, value_named as value_named
    from everlong.core.json_pieces import LARGE as LARGE, write_json as write_json
    from everlong.core.messages import (
        CallId as CallId,
        Ending as Ending,
        History as History,
        Image as Image,
        Json as Json,
        JsonObject as JsonObject,
        JsonText as JsonText,
        Message as Message,
        Opaque as Opaque,
        Part as Part,
        Reasoning as Reasoning,
        ResultPart as ResultPart,
        Role as Role,
        Text as Text,
        ToolCall as ToolCall,
        ToolResult as ToolResult,
        user_text as user_text,
    )
    from everlong.core.observations import (
        FrameKind as FrameKind,
        frames_in as frames_in,
        is_framed as is_framed,
        said_by_users as said_by_users,
    )
    from everlong.core.points import (
        Action as Action,
        Edit as Edit,
        Entry as Entry,
        Figures as Figures,
        Gone as Gone,
        Point as Point,
        Recalled as Recalled,
        Removal as Removal,
        Restoration as Restoration,
        Withdrawal as Withdrawal,
        leads as leads,
        messages_from as messages_from,
        view as view,
        visible as visible,
    )
    from everlong.core.positions import Position as Position, positions_of as positions_of
    from everlong.core.removals import going_with as going_with
    from everlong.core.rounds import (
        Protection as Protection,
        Round as Round,
        Step as Step,
        head_length as head_length,
        last_user_index as last_user_index,
        pairs_of as pairs_of,
        protected as protected,
        rounds_of as rounds_of,
        safe_cuts as safe_cuts,
        steps_of as steps_of,
        task_index as task_index,
    )
    from everlong.core.suggestions import did_you_mean as did_you_mean, misspelt as misspelt, nearest as nearest
    from everlong.core.threads import (
        Hit as Hit,
        Opened as Opened,
        Pin as Pin,
        Row as Row,
        Thread as Thread,
        opened as opened,
        system_rows as system_rows,
    )
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "arguments": "expect expect_function expect_list expect_number expect_text",
            "budget": "Budget SMALLEST_REPLY clamp_reply reply_budget session_budget token_count",
            "encoding": "Ref bytes_of decode encode encode_all message_ref original_in part_content part_ref ref_of",
            "events": "Event EventKind OUTCOMES STARTS starts",
            "json_pieces": "LARGE write_json",
            "imports": "function_named value_named",
            "messages": "CallId Ending History Image Json JsonObject JsonText Message Opaque Part Reasoning ResultPart Role "
            "Text ToolCall ToolResult user_text",
            "observations": "FrameKind frames_in is_framed said_by_users",
            "points": "Action Edit Entry Figures Gone Point Recalled Removal Restoration Withdrawal leads messages_from "
            "view visible",
            "positions": "Position positions_of",
            "removals": "going_with",
            "rounds": "Protection Round Step head_length last_user_index pairs_of protected rounds_of safe_cuts "
            "steps_of task_index",
            "suggestions": "did_you_mean misspelt nearest",
            "threads": "Hit Opened Pin Row Thread opened system_rows",
        },
    )
