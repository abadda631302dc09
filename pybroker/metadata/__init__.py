"""The cluster's metadata as every broker sees it: one immutable image, made from committed records.

Owns the image, the change from one image to the next, and who is notified of it. Must not know how records are agreed
on (`pybroker.controller`) nor what a broker does about a change. Handlers read one image for the whole of a request.
"""
