"""The gateways' benchmark: what everlong's, litellm's and headroom's add to one scripted upstream, beside no gateway."""
