"""The rules of ordinary jobs on topics: ingest, archive, word count, hot words, abusive callers, robo-adviser.

Each is a module of pure functions from DataFrame to DataFrame, which need no broker. Owns the rules. Must not know how
records travel: topics are read and written by a data source alone.
"""
