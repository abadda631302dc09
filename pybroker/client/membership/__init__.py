"""Membership in a group, from the member's side: one pure state machine for each of the two protocols.

A machine decides about an event (`handle`), applies the decision (`apply`), and returns what is due. It sends
nothing; time and responses are arguments. `pybroker.client.drivers` runs it. The part that the program does in
`poll` is a `RebalanceStep`.
"""
