"""The way of the gateway's own calls: as the client's request went, so that they work wherever it did.

A cloud has a format below a path with the model's name in it, wants the key in another header, and knows a model by the
name that its customer chose.
"""

from everlong.gateway.clients import Client
from everlong.gateway.request import ModelRequest
from everlong.gateway.upstreams.headers import Headers, key_header_for
from everlong.gateway.upstreams.routing import Upstream
from everlong.llm import Way

__all__ = ["way_of"]

#: The part of a query that says which version of an API is asked. Others may hold keys.
VERSION = "api-version="
STREAM_OPTIONS = "stream_options"


def way_of(
    request: ModelRequest, model: str, *, upstream: Upstream, client: Client, headers: Headers, query: str
) -> Way | None:
    """Return the way of a request for a model that its upstream may call otherwise; None if it is the usual one."""
    surface, api = request.address.surface, request.format.api
    if not surface.cloud:
        return None if request.model == model else Way(model=model, sent=request.model)
    named, sign = {"model"} if surface.names_model else set(), surface.sign
    # If the path asks for the stream, or the client asked for none, no field does.
    quiet = {api.stream, STREAM_OPTIONS} if surface.stream is not None or not request.stream else set()
    return Way(
        model=model,
        sent=request.model,
        path=request.address.any_models,
        query="&".join(part for part in query.split("&") if part.startswith(VERSION)),
        fields=((sign, bytes(request.fields[sign]).decode()),) if sign in request.fields else (),
        without=frozenset(named | quiet),
        key_header=key_header_for(upstream, client, headers),
    )
