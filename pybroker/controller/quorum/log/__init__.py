"""The metadata log on disk: the vote, the log position, detection of lost records, and reads by followers."""
