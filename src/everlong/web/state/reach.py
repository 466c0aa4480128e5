"""Which servers an added source may use: public ones, this machine and its network, never a cloud's metadata service.

A name is looked up and checked for every connection, and the connection goes to the address that was checked. So a name
that changes to a forbidden address leads nowhere.
"""

import ipaddress
from dataclasses import dataclass
from socket import AF_INET, AF_INET6, AddressFamily
from typing import TypeAlias
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult

from everlong.agent import Resolve, is_public, resolve_by_system

__all__ = ["NEAR_BY", "Reach"]

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

#: This machine, and the networks that homes, offices and private tunnels use.
NEAR = tuple(
    map(
        ipaddress.ip_network,
        (
            "127.0.0.0/8",
            "10.0.0.0/8",
            "172.16.0.0/12",
            "192.168.0.0/16",
            "100.64.0.0/10",
            "::1/128",
            "fc00::/7",
        ),
    )
)
#: Where clouds give a machine its own secrets.
NEVER = tuple(
    map(
        ipaddress.ip_network,
        (
            "169.254.0.0/16",  # link-local, and the metadata of most clouds
            "fe80::/10",
            "100.100.100.200/32",  # Alibaba
            "168.63.129.16/32",  # Azure
            "192.0.0.192/32",  # Oracle
            "fd00:ec2::/32",  # Amazon
            "fd20:ce::254/128",  # Google
        ),
    )
)


@dataclass(frozen=True, slots=True)
class Reach:
    """Limits on connections. Only a `near` app, which no other machine can reach, may use its own network and http."""

    near: bool

    def allows(self, address: Address) -> bool:
        """Return whether an address is allowed. Example: 127.0.0.1 -> if near; 169.254.169.254 -> False"""
        inner = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        if inner is not None:
            return self.allows(inner)
        if any(address in network for network in NEVER):
            return False
        return is_public(address) or (self.near and any(address in network for network in NEAR))

    def allows_url(self, url: str) -> bool:
        """Return whether a base address looks allowed; host names are checked when they are looked up."""
        parts = urlsplit(url)
        if parts.scheme != "https" and not self.near:
            return False
        host = parts.hostname or ""
        try:
            return self.allows(ipaddress.ip_address(host))
        except ValueError:
            return not host.replace(".", "").isdigit()  # other programs read 127.1 and 2130706433 as addresses

    def resolver(self, resolve: Resolve = resolve_by_system) -> AbstractResolver:
        """Return the resolver that looks up and checks names for a connection."""
        return _CheckedNames(self, resolve)


NEAR_BY = Reach(near=True)


class _CheckedNames(AbstractResolver):
    """Resolves a name to its addresses, if all of them are allowed, because any of them may be used."""

    def __init__(self, reach: Reach, resolve: Resolve) -> None:
        self._reach = reach
        self._resolve = resolve

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: AddressFamily = AF_INET,  # noqa: ARG002 - each address has its own
    ) -> list[ResolveResult]:
        found = [address.partition("%")[0] for address in await self._resolve(host)]
        if not all(self._reach.allows(ipaddress.ip_address(address)) for address in found):
            raise OSError("its address is not allowed")
        return [
            ResolveResult(
                hostname=host, host=address, port=port, family=AF_INET6 if ":" in address else AF_INET, proto=0, flags=0
            )
            for address in found
        ]

    async def close(self) -> None:
        return
