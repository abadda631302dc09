"""Authentication, authorization and quotas of clients.

Owns principals, authentication, ACLs and quotas. Must not know handlers.

    principals    the authenticated identity of a client
    operations    the resource types, and the operations on each
    requirements  the operations that the requests of an API require, declared by its handler
    authorizer    the only place that authorizes; acls evaluates access control entries
    kerberos_library  the system's Kerberos; kerberos_names, the user name of a ticket's owner
    sasl          authentication of connections; delegation_tokens, authentication by token
    key_material  certificates and keys of listeners; principal_mapping, the principal of a certificate
    quotas        the only place that computes throttle times; mutation_quotas, for created and deleted partitions
"""
