"""Wire formats, session files, refusals, usage and repair: everything that providers and other programs write.

A format is one object (`FORMATS`), and so is a session file format. Pure: no network, no clock. This package never
decides what is sent.
"""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.wire.archives import (
        ARCHIVE_START as ARCHIVE_START,
        files_in as files_in,
        is_archive as is_archive,
        packed as packed,
    )
    from everlong.wire.document import Document as Document
    from everlong.wire.documents import (
        body_format as body_format,
        document_of as document_of,
        list_format as list_format,
        marks_of as marks_of,
        read as read,
        read_all as read_all,
        sendable as sendable,
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
        OLLAMA as OLLAMA,
        OPENAI_CHAT as OPENAI_CHAT,
        OPENAI_RESPONSES as OPENAI_RESPONSES,
        format_named as format_named,
        problems as problems,
    )
    from everlong.wire.formats.allowances import Allowance as Allowance
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
        added_usage as added_usage,
    )
    from everlong.wire.formats.opaque import Find as Find
    from everlong.wire.formats.reply_reader import (
        Outgoing as Outgoing,
        ReplyReader as ReplyReader,
        ReplyStream as ReplyStream,
        finished_from as finished_from,
    )
    from everlong.wire.formats.reply_writer import WrittenReply as WrittenReply, text_pieces as text_pieces
    from everlong.wire.formats.server import (
        Canonical as Canonical,
        Compaction as Compaction,
        Errors as Errors,
        Held as Held,
        UsageShape as UsageShape,
    )
    from everlong.wire.formats.translation import arguments_object as arguments_object
    from everlong.wire.formats.validation import Problem as Problem
    from everlong.wire.framing import (
        BYTE_ORDER_MARK as BYTE_ORDER_MARK,
        DONE as DONE,
        SseEvent as SseEvent,
        SseReader as SseReader,
        json_bytes as json_bytes,
        sse_bytes as sse_bytes,
    )
    from everlong.wire.framings import (
        AWS_FRAMES as AWS_FRAMES,
        NDJSON as NDJSON,
        SSE as SSE,
        Framing as Framing,
        framing_of as framing_of,
    )
    from everlong.wire.json_files import decode_bytes as decode_bytes
    from everlong.wire.libraries import (
        library_named as library_named,
        library_of as library_of,
        object_library as object_library,
    )
    from everlong.wire.libraries.library import Library as Library, Unit as Unit, given_back as given_back
    from everlong.wire.libraries.rows import plain as plain, rows_library as rows_library
    from everlong.wire.refusals.classify import as_error as as_error, classify as classify
    from everlong.wire.refusals.exceptions import error_from as error_from
    from everlong.wire.refusals.overflow_signs import HOSTED_SIGNS as HOSTED_SIGNS, OverflowSign as OverflowSign
    from everlong.wire.refusals.overflow_signs_served import SERVED_SIGNS as SERVED_SIGNS, SHARED_SIGNS as SHARED_SIGNS
    from everlong.wire.refusals.reasons import Reason as Reason
    from everlong.wire.repair import Repaired as Repaired, repair_history as repair_history, valid as valid
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
    from everlong.wire.sessions import (
        CHATBOX as CHATBOX,
        EVERLONG as EVERLONG,
        NANOBOT as NANOBOT,
        SESSION_FORMATS as SESSION_FORMATS,
        SESSION_PROGRAMS as SESSION_PROGRAMS,
        SESSION_SUFFIXES as SESSION_SUFFIXES,
    )
    from everlong.wire.sessions.agents.nanobot import (
        NANOBOT_SUMMARY as NANOBOT_SUMMARY,
        SUFFIX as SUFFIX,
        file_name as file_name,
        legacy_file_name as legacy_file_name,
        nanobot_lines as nanobot_lines,
        session_key as session_key,
        summary_in as summary_in,
        summary_message as summary_message,
    )
    from everlong.wire.sessions.chats.everlong import THREAD as THREAD, VERSION as VERSION
    from everlong.wire.sessions.conversation import (
        HEADING as HEADING,
        headed_summary as headed_summary,
        summary_text as summary_text,
    )
    from everlong.wire.sessions.records import aside as aside, stamp as stamp
    from everlong.wire.sessions.session import RecordedRequest as RecordedRequest, SessionFormat as SessionFormat
    from everlong.wire.usage import (
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
            "archives": "ARCHIVE_START files_in is_archive packed",
            "document": "Document",
            "documents": "body_format document_of list_format marks_of read read_all sendable sent_as user_texts value_of with_messages write",
            "fields": "dump load unpack",
            "formats": "ANTHROPIC FORMATS GEMINI OLLAMA OPENAI_CHAT OPENAI_RESPONSES format_named problems",
            "formats.allowances": "Allowance",
            "formats.format": "Api CacheMarks Deltas Format Place",
            "formats.hidden_tool": "Event HiddenTool Shown added_usage",
            "formats.opaque": "Find",
            "formats.reply_reader": "Outgoing ReplyReader ReplyStream finished_from",
            "formats.reply_writer": "WrittenReply text_pieces",
            "formats.server": "Canonical Compaction Errors Held UsageShape",
            "formats.translation": "arguments_object",
            "formats.validation": "Problem",
            "framing": "BYTE_ORDER_MARK DONE SseEvent SseReader json_bytes sse_bytes",
            "framings": "AWS_FRAMES NDJSON SSE Framing framing_of",
            "json_files": "decode_bytes",
            "libraries": "library_named library_of object_library",
            "libraries.library": "Library Unit given_back",
            "libraries.rows": "plain rows_library",
            "refusals.classify": "as_error classify",
            "refusals.exceptions": "error_from",
            "refusals.overflow_signs": "HOSTED_SIGNS OverflowSign",
            "refusals.reasons": "Reason",
            "refusals.overflow_signs_served": "SERVED_SIGNS SHARED_SIGNS",
            "repair": "Repaired repair_history valid",
            "replies": "Caching CallGrew Failed Finished Reply Request Restarted Said Thought breakpoints",
            "sessions": "CHATBOX EVERLONG NANOBOT SESSION_FORMATS SESSION_PROGRAMS SESSION_SUFFIXES",
            "sessions.conversation": "HEADING headed_summary summary_text",
            "sessions.chats.everlong": "THREAD VERSION",
            "sessions.agents.nanobot": "NANOBOT_SUMMARY SUFFIX file_name legacy_file_name nanobot_lines session_key summary_in "
            "summary_message",
            "sessions.records": "aside stamp",
            "sessions.session": "RecordedRequest SessionFormat",
            "usage": "Usage merged plausible read_usage read_usage silent_overflow truncated_window",
        },
    )
