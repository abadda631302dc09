"""Who a client is, what it may do, and how much of it.

Owns principals, authentication, authorization and quotas. Must not know handlers.

    principals    who a request is from
    operations    the types of resources, and what may be done to each
    requirements  what the requests of an API need, as data that its handler declares
    authorizer    the one place that decides; acls, what access control entries allow
    kerberos_library  the system's Kerberos; kerberos_names, who the owner of a ticket is
    sasl          how a connection proves who it is; delegation_tokens, how by a token
    key_material  certificates and keys of listeners; principal_mapping, whom a certificate stands for
    quotas        the one place that says how long a client is to wait; mutation_quotas, for partitions made and deleted
"""
