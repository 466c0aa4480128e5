"""Edits and errors say what happened in figures."""

from everlong.core.points import Action, Edit
from everlong.errors import BudgetImpossible, ContextOverflow, EverlongError, ProviderError, WireError


def test_an_edit_knows_what_it_saved() -> None:
    edit = Edit(
        at=3, step="soft_trim", action=Action.SHORTEN, reason="9 000 of 9 100 lines left out", before=900, after=40
    )
    assert edit.saved == 860


def test_an_impossible_budget_lists_the_parts_largest_first() -> None:
    error = BudgetImpossible(1_000, [("tool schemas", 400), ("system prompt", 1_200)])
    assert error.parts == (("system prompt", 1_200), ("tool schemas", 400))
    assert (
        str(error)
        == "the request needs at least 1,600 tokens, but the limit is 1,000: system prompt 1,200, tool schemas 400"
    )


def test_errors_carry_their_figures() -> None:
    overflow = ContextOverflow("too long", provider="anthropic", status=400, limit=200_000, requested=213_462)
    assert (overflow.limit, overflow.requested, overflow.status) == (200_000, 213_462, 400)
    assert isinstance(overflow, ProviderError)
    assert isinstance(overflow, EverlongError)
    assert str(WireError("unknown role 'x'", fmt="openai-chat", where="messages[3]")) == (
        "openai-chat: unknown role 'x' (at messages[3])"
    )
