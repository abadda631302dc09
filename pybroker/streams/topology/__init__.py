"""The topology as data, and its description."""
