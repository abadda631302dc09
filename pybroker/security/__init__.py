"""Who may do what. There is no authorizer yet, so everybody may do everything.

Owns principals, authentication, authorization and quotas. Must not know handlers.

    principals    who a request is from
    operations    the types of resources, and what may be done to each
    requirements  what the requests of an API need, as data that its handler declares
    authorizer    the one place that decides
    quotas        the one place that says how long a client is to wait
"""
