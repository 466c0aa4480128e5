"""The prompt: read a line, do what it says, until someone leaves."""

from everlong.cli.chat_commands import run_command
from everlong.cli.chat_input import Keyboard
from everlong.cli.chat_talk import Chat
from everlong.cli.maps.shown_text import one_line
from everlong.errors import EverlongError

__all__ = ["prompt_loop"]

#: Lines that begin like a command and are none: a path that was pasted first.
NOT_COMMANDS = ("//", "/ ")


def prompt_loop(chat: Chat, keyboard: Keyboard) -> None:
    """Until /exit, the end of input, or Ctrl-C twice in a row."""
    interrupted = False
    while not chat.leaving:
        try:
            said = keyboard.message()
            interrupted = False
        except EOFError:
            chat.screen.out.print()
            return
        except KeyboardInterrupt:
            chat.screen.out.print()
            if interrupted:
                return
            interrupted = True
            chat.screen.note(chat.say("again_to_leave"))
            continue
        try:
            _do(chat, said)
        except KeyboardInterrupt:  # in the middle of a command: it is given up
            chat.screen.note(chat.say("interrupted"), "yellow")
        except EverlongError as error:  # the store is away, or the like; the person decides
            chat.screen.fail(one_line(str(error)))


def _do(chat: Chat, said: str) -> None:
    line = said.strip()
    if line.startswith("/") and not line.startswith(NOT_COMMANDS) and "/" not in line[1:].partition(" ")[0]:
        run_command(chat, line)
    elif line or chat.pictures:
        chat.turn(said)
        chat.show_meter()
    else:
        chat.tell_notices()
