"""Drivers of SDKs: clients of one API, with our own loop around them."""
