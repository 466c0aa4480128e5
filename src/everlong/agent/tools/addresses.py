"""Which addresses of the network a model may reach: public ones, and nothing of this machine or its neighbours."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from everlong.errors import InputError

__all__ = ["Address", "Resolve", "addresses_of", "is_public", "resolve_by_system"]

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

#: The addresses of a host name.
Resolve: TypeAlias = Callable[[str], Awaitable[list[str]]]

TRANSLATED = ipaddress.ip_network("64:ff9b::/96")  # an IPv4 address in its last 32 bits


def is_public(address: Address) -> bool:
    """Whether it is on the open network. Addresses that hold another one are judged by that one too.

    Example: 93.184.216.34 -> True; 127.0.0.1, 10.0.0.8, 169.254.169.254, ::1, ::ffff:127.0.0.1 -> False
    """
    if isinstance(address, ipaddress.IPv6Address):
        held = [held for held in (address.ipv4_mapped, address.sixtofour) if held is not None]
        held += address.teredo or ()
        if address in TRANSLATED:
            held.append(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
            return all(map(is_public, held))
        if not all(map(is_public, held)):
            return False
    kinds = (address.is_private, address.is_loopback, address.is_link_local, address.is_multicast)
    return address.is_global and not any((*kinds, address.is_reserved, address.is_unspecified))


async def resolve_by_system(host: str) -> list[str]:
    """The addresses that the system knows for a name."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def addresses_of(host: str, resolve: Resolve, allowed: Callable[[Address], bool]) -> list[str]:
    """The addresses of a host, all of them allowed. Raises InputError where one is not: it may be the one meant."""
    try:
        texts = [str(ipaddress.ip_address(host))]
    except ValueError:
        if host.replace(".", "").isdigit():  # 127.1, 2130706433: names to us, addresses to others
            raise InputError(f"{host}: neither a name nor an address") from None
        try:
            texts = await resolve(host)
        except (OSError, UnicodeError):
            raise InputError(f"{host}: no such host") from None
    if not texts:
        raise InputError(f"{host}: no such host")
    for text in texts:
        try:
            fine = allowed(ipaddress.ip_address(text.partition("%")[0]))
        except ValueError:
            fine = False
        if not fine:
            raise InputError(f"{host}: its address {text} is not on the public network")
    return texts
