"""The lab's findings as one HTML page each: own pictures, no script, light and dark, English and Chinese."""

from everlong.lab.report.page import page

__all__ = ["page"]
