"""The classic protocol: members send metadata, one of them assigns, and generations follow each other.

`group` is the value of a group, `transitions` are its states, `draft` contains the steps that build a new value. The
other modules decide about one kind of event each. Must not know the protocol of KIP-848.
"""
