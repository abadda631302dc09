"""The cluster's metadata: an immutable image, made from committed records of the metadata log.

Owns the image, the delta between two images, and the publishers. Must not know how records are committed
(`pybroker.controller`), nor the reactions of brokers to a change. A handler reads one image for the whole request.
"""
