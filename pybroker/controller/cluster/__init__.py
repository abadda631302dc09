"""The cluster machine: topics, brokers, configurations, features and producer ids.

Owns every decision about metadata. Reads events and returns metadata records; does no I/O, reads no clock and has no
random source: the seeds of random choices are part of the event.
"""
