"""The lab's findings as one HTML page each: own pictures, no script, light and dark, English and Chinese."""
