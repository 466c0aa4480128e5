"""The engine for programs that call their models themselves: messages in, messages that fit out."""
