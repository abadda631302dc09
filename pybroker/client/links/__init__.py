"""Links: what keeps a member in its group, by tasks on the event loop of the consumer.

A link drives one of the machines of `pybroker.client.membership`: it finds the coordinator, sends what the machine
wants sent, and tells the consumer when it is the program's turn. Heartbeats need no `poll`, only a loop that runs.
"""
