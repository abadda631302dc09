"""Log directories: their identity, their metadata files, and the files of a clean shutdown."""
