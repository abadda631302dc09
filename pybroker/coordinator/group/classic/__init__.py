"""The classic protocol: members bring their metadata, one of them assigns, generations follow each other.

`group` is the value that a group is, `transitions` its states, `draft` the steps by which a decision makes a new value.
The other modules decide about one kind of event each. Must not know the protocol of KIP-848.
"""
