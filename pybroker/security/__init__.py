"""Who may do what. So far only what is said when nobody is asked for rights.

Owns principals, authentication, authorization and quotas. Must not know handlers.

    operations  the operations of each kind of resource, as the bit fields that responses carry (KIP-430)
    principals  who a request is from
"""
