"""One shape for every state machine, and the one runner that drives them.

A machine's `handle` reads and decides but changes nothing; its `apply` changes and decides nothing. Load, follower and
leader run the same `apply`. The users of the runner are the coordinators' runtime (`pybroker.coordinator.runtime`) and
the controller; a client's membership machines have these two methods, but no records
(`pybroker.client.membership.machine`). Must not know any particular machine or record.
"""
