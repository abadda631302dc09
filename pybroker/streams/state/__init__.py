"""State stores of a topology: typed stores, their caches, changelogs and in-memory bytes stores."""
