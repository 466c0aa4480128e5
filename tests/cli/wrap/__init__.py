"""Tests of `everlong wrap` and `everlong doctor`."""
