"""Apps with several users, for tests."""

from dataclasses import replace

from everlong.web.app import AppState, Setup
from everlong.web.apps import Apps
from everlong.web.live.site import Site
from everlong.web.users.members import MemberThreads

__all__ = ["user_apps"]


def user_apps(setup: Setup) -> Apps:
    """An app for each user over one store, as `everlong serve` makes them."""
    site = Site(setup.threads)

    def make(owner: str) -> AppState:
        return AppState(replace(setup, threads=MemberThreads(setup.threads, owner), owner=owner), site)

    return Apps(site, make)
