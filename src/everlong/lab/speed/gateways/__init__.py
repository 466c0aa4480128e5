"""What a gateway adds: everlong's, litellm's and headroom's in front of one scripted upstream, beside going direct."""
