"""The users of the app: accounts and logins, an OpenID provider, and each user's own part of the store."""
