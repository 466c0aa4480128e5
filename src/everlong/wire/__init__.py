"""Payloads of every format to messages and back. Pure: no network, no files, no clock."""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.wire.anthropic_marks import (
        FIELD as FIELD,
        MOST as MOST,
        marker as marker,
        may_bear as may_bear,
        tool_may_bear as tool_may_bear,
        with_marks as with_marks,
        without_marks as without_marks,
    )
    from everlong.wire.decoding import decode_bytes as decode_bytes
    from everlong.wire.document import Document as Document
    from everlong.wire.fields import dump as dump, load as load, unpack as unpack
    from everlong.wire.openai.responses_calls import CALLS as CALLS, OUTPUTS as OUTPUTS
    from everlong.wire.openai_chat import parse as parse, parse_body as parse_body, render_history as render_history
    from everlong.wire.openai_responses import parse_items as parse_items
    from everlong.wire.reading import (
        BODY_FORMATS as BODY_FORMATS,
        LIST_FIELD as LIST_FIELD,
        SESSION_FORMATS as SESSION_FORMATS,
        document_of as document_of,
        read as read,
        read_all as read_all,
    )
    from everlong.wire.recognition import list_format as list_format
    from everlong.wire.refusals.classify import as_error as as_error, classify as classify
    from everlong.wire.refusals.overflow import SIGNS as SIGNS
    from everlong.wire.refusals.overflow_signs import HOSTED_SIGNS as HOSTED_SIGNS, OverflowSign as OverflowSign
    from everlong.wire.refusals.overflow_signs_served import SERVED_SIGNS as SERVED_SIGNS, SHARED_SIGNS as SHARED_SIGNS
    from everlong.wire.refusals.shape_signs import SHAPE_SIGNS as SHAPE_SIGNS
    from everlong.wire.refusals.signs import Kind as Kind
    from everlong.wire.refusals.silent import (
        SilentOverflow as SilentOverflow,
        silent_overflow as silent_overflow,
        truncated_window as truncated_window,
    )
    from everlong.wire.repair import (
        RENDERERS as RENDERERS,
        Repaired as Repaired,
        repair_history as repair_history,
        valid as valid,
    )
    from everlong.wire.repair.arguments import mended as mended
    from everlong.wire.repair.blanks import NO_OUTPUT as NO_OUTPUT
    from everlong.wire.repair.pairs import NO_RESULT as NO_RESULT
    from everlong.wire.repair.rules import rules_of as rules_of
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
    from everlong.wire.sessions.chatbox_runs import message_id as message_id
    from everlong.wire.sessions.conversation import (
        HEADING as HEADING,
        summary_text as summary_text,
        tell_summary as tell_summary,
    )
    from everlong.wire.sessions.nanobot import (
        SUFFIX as SUFFIX,
        file_name as file_name,
        legacy_file_name as legacy_file_name,
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
    from everlong.wire.translation import arguments_object as arguments_object
    from everlong.wire.usage import Usage as Usage, merged as merged, plausible as plausible, read_usage as read_usage
    from everlong.wire.validate import problems as problems
    from everlong.wire.validate.problem import Problem as Problem
    from everlong.wire.writing import value_of as value_of, with_messages as with_messages, write as write
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "anthropic_marks": "FIELD MOST marker may_bear tool_may_bear with_marks without_marks",
            "decoding": "decode_bytes",
            "document": "Document",
            "fields": "dump load unpack",
            "openai.responses_calls": "CALLS OUTPUTS",
            "openai_chat": "parse parse_body render_history",
            "openai_responses": "parse_items",
            "reading": "BODY_FORMATS LIST_FIELD SESSION_FORMATS document_of read read_all",
            "recognition": "list_format",
            "refusals.classify": "as_error classify",
            "refusals.overflow": "SIGNS",
            "refusals.overflow_signs": "HOSTED_SIGNS OverflowSign",
            "refusals.overflow_signs_served": "SERVED_SIGNS SHARED_SIGNS",
            "refusals.shape_signs": "SHAPE_SIGNS",
            "refusals.signs": "Kind",
            "refusals.silent": "SilentOverflow silent_overflow truncated_window",
            "repair": "RENDERERS Repaired repair_history valid",
            "repair.arguments": "mended",
            "repair.blanks": "NO_OUTPUT",
            "repair.pairs": "NO_RESULT",
            "repair.rules": "rules_of",
            "repair.shapes": "NOT_ITS_OWN",
            "replies": "Caching CallGrew Failed Finished Reply Request Restarted Said Thought breakpoints",
            "sessions.chatbox_runs": "message_id",
            "sessions.conversation": "HEADING summary_text tell_summary",
            "sessions.nanobot": "SUFFIX file_name legacy_file_name session_key summary_in summary_message",
            "sessions.records": "aside fields_of records_of stamp",
            "translation": "arguments_object",
            "usage": "Usage merged plausible read_usage",
            "validate": "problems",
            "validate.problem": "Problem",
            "writing": "value_of with_messages write",
        },
    )
