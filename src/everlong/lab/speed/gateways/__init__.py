"""The gateways' benchmark: what everlong's, litellm's and headroom's gateways add to one scripted upstream."""
