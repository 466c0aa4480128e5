"""Replay: send a recorded conversation again, request by request, and see what that costs and keeps.

`sources` finds sessions, `policies` has what can be done with them, `playback` plays one session under one policy and
`plan` all of them. No model is called.
"""
