"""Spark for pybroker, the only distribution that needs PySpark.

Owns what is Spark's: session defaults today. Knows nothing of the broker but `pybroker.client`'s public face.
Importing this package starts nothing, and does not import PySpark: the first call of `session` does.
"""

from pybroker_spark.session import SETTINGS, session

__all__ = ["SETTINGS", "session"]
