"""Payloads of every format to messages and back. Pure: no network, no files, no clock."""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.wire.document import Document as Document
    from everlong.wire.documents import (
        document_of as document_of,
        list_format as list_format,
        marks_of as marks_of,
        read as read,
        read_all as read_all,
        sent_as as sent_as,
        user_texts as user_texts,
        value_of as value_of,
        with_messages as with_messages,
        write as write,
    )
    from everlong.wire.fields import dump as dump, load as load, unpack as unpack
    from everlong.wire.formats import (
        ANTHROPIC as ANTHROPIC,
        FORMATS as FORMATS,
        GEMINI as GEMINI,
        OPENAI_CHAT as OPENAI_CHAT,
        OPENAI_RESPONSES as OPENAI_RESPONSES,
        format_named as format_named,
        problems as problems,
    )
    from everlong.wire.formats.format import (
        Api as Api,
        CacheMarks as CacheMarks,
        Deltas as Deltas,
        Format as Format,
        Place as Place,
    )
    from everlong.wire.formats.hidden_tool import (
        Event as Event,
        HiddenTool as HiddenTool,
        Shown as Shown,
        StreamEditor as StreamEditor,
        added_usage as added_usage,
    )
    from everlong.wire.formats.opaque import Find as Find, OpaqueParts as OpaqueParts
    from everlong.wire.formats.openai_chat.exchange import GrowingCalls as GrowingCalls
    from everlong.wire.formats.openai_responses.items import CALLS as CALLS, OUTPUTS as OUTPUTS
    from everlong.wire.formats.openai_responses.messages import COMPACTIONS as COMPACTIONS
    from everlong.wire.formats.reply_reader import (
        Outgoing as Outgoing,
        ReplyReader as ReplyReader,
        ReplyStream as ReplyStream,
    )
    from everlong.wire.formats.reply_writer import (
        ReplyWriter as ReplyWriter,
        WrittenReply as WrittenReply,
        text_pieces as text_pieces,
    )
    from everlong.wire.formats.server import (
        Canonical as Canonical,
        Errors as Errors,
        ServerSide as ServerSide,
        UsageShape as UsageShape,
    )
    from everlong.wire.formats.translation import arguments_object as arguments_object
    from everlong.wire.formats.validation import Problem as Problem
    from everlong.wire.framing import (
        BYTE_ORDER_MARK as BYTE_ORDER_MARK,
        DONE as DONE,
        JsonEvents as JsonEvents,
        SseEvent as SseEvent,
        SseReader as SseReader,
        json_bytes as json_bytes,
        sse_bytes as sse_bytes,
    )
    from everlong.wire.json_files import decode_bytes as decode_bytes
    from everlong.wire.refusals.classify import as_error as as_error, classify as classify
    from everlong.wire.refusals.overflow import SIGNS as SIGNS
    from everlong.wire.refusals.overflow_signs import HOSTED_SIGNS as HOSTED_SIGNS, OverflowSign as OverflowSign
    from everlong.wire.refusals.overflow_signs_served import SERVED_SIGNS as SERVED_SIGNS, SHARED_SIGNS as SHARED_SIGNS
    from everlong.wire.refusals.shape_signs import SHAPE_SIGNS as SHAPE_SIGNS
    from everlong.wire.refusals.signs import Kind as Kind
    from everlong.wire.repair import (
        Repaired as Repaired,
        repair_history as repair_history,
        valid as valid,
    )
    from everlong.wire.repair.arguments import repaired_arguments as repaired_arguments
    from everlong.wire.repair.blanks import NO_OUTPUT as NO_OUTPUT
    from everlong.wire.repair.pairs import NO_RESULT as NO_RESULT
    from everlong.wire.repair.shapes import NOT_ITS_OWN as NOT_ITS_OWN
    from everlong.wire.replies import (
        Caching as Caching,
        CallGrew as CallGrew,
        Failed as Failed,
        Finished as Finished,
        Reply as Reply,
        Request as Request,
        Restarted as Restarted,
        Said as Said,
        Thought as Thought,
        breakpoints as breakpoints,
    )
    from everlong.wire.sessions import NANOBOT as NANOBOT, SESSION_FORMATS as SESSION_FORMATS
    from everlong.wire.sessions.chatbox_messages import message_id as message_id
    from everlong.wire.sessions.conversation import (
        HEADING as HEADING,
        summary_text as summary_text,
        tell_summary as tell_summary,
    )
    from everlong.wire.sessions.nanobot import (
        NANOBOT_SUMMARY as NANOBOT_SUMMARY,
        SUFFIX as SUFFIX,
        file_name as file_name,
        legacy_file_name as legacy_file_name,
        nanobot_lines as nanobot_lines,
        session_key as session_key,
        summary_in as summary_in,
        summary_message as summary_message,
    )
    from everlong.wire.sessions.records import (
        aside as aside,
        fields_of as fields_of,
        records_of as records_of,
        stamp as stamp,
    )
    from everlong.wire.sessions.session import RecordedRequest as RecordedRequest, SessionFormat as SessionFormat
    from everlong.wire.usage import (
        SilentOverflow as SilentOverflow,
        Usage as Usage,
        merged as merged,
        plausible as plausible,
        read_usage as read_usage,
        silent_overflow as silent_overflow,
        truncated_window as truncated_window,
    )
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "document": "Document",
            "documents": "document_of list_format marks_of read read_all sent_as user_texts value_of with_messages write",
            "fields": "dump load unpack",
            "formats": "ANTHROPIC FORMATS GEMINI OPENAI_CHAT OPENAI_RESPONSES format_named problems",
            "formats.format": "Api CacheMarks Deltas Format Place",
            "formats.hidden_tool": "Event HiddenTool Shown StreamEditor added_usage",
            "formats.opaque": "Find OpaqueParts",
            "formats.openai_chat.exchange": "GrowingCalls",
            "formats.openai_responses.items": "CALLS OUTPUTS",
            "formats.openai_responses.messages": "COMPACTIONS",
            "formats.reply_reader": "Outgoing ReplyReader ReplyStream",
            "formats.reply_writer": "ReplyWriter WrittenReply text_pieces",
            "formats.server": "Canonical Errors ServerSide UsageShape",
            "formats.translation": "arguments_object",
            "formats.validation": "Problem",
            "framing": "BYTE_ORDER_MARK DONE JsonEvents SseEvent SseReader json_bytes sse_bytes",
            "json_files": "decode_bytes",
            "refusals.classify": "as_error classify",
            "refusals.overflow": "SIGNS",
            "refusals.overflow_signs": "HOSTED_SIGNS OverflowSign",
            "refusals.overflow_signs_served": "SERVED_SIGNS SHARED_SIGNS",
            "refusals.shape_signs": "SHAPE_SIGNS",
            "refusals.signs": "Kind",
            "repair": "Repaired repair_history valid",
            "repair.arguments": "repaired_arguments",
            "repair.blanks": "NO_OUTPUT",
            "repair.pairs": "NO_RESULT",
            "repair.shapes": "NOT_ITS_OWN",
            "replies": "Caching CallGrew Failed Finished Reply Request Restarted Said Thought breakpoints",
            "sessions": "NANOBOT SESSION_FORMATS",
            "sessions.chatbox_messages": "message_id",
            "sessions.conversation": "HEADING summary_text tell_summary",
            "sessions.nanobot": "NANOBOT_SUMMARY SUFFIX file_name legacy_file_name nanobot_lines session_key summary_in "
            "summary_message",
            "sessions.records": "aside fields_of records_of stamp",
            "sessions.session": "RecordedRequest SessionFormat",
            "usage": "SilentOverflow Usage merged plausible read_usage silent_overflow truncated_window",
        },
    )
