"""Drivers of SDKs: clients of one API, with a loop of our own around them."""
