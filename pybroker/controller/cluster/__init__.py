"""The cluster machine: topics, brokers, configurations, features and producer ids.

Owns every decision about metadata. Reads events, answers with metadata records; does no I/O, reads no clock and rolls
no dice: the seeds of random choices come with the event.
"""
