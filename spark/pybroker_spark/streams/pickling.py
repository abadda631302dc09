"""How a topology reaches the workers: by cloudpickle, with its functions by value where no module has them."""

from __future__ import annotations

import io
import struct
from collections import ChainMap
from typing import Any, ClassVar

from pyspark import cloudpickle

from pybroker.streams.errors import TopologyError
from pybroker_spark.streams.plan import Plan


def _reduce_struct(value: struct.Struct) -> tuple[type[struct.Struct], tuple[str]]:
    return struct.Struct, (value.format,)


class _Pickler(cloudpickle.Pickler):
    """A pickler that also has the packed formats of serdes, which the standard library cannot pickle."""

    dispatch_table: ClassVar[Any] = ChainMap[Any, Any](  # type: ignore[misc] # cloudpickle has it in the class too
        {struct.Struct: _reduce_struct}, cloudpickle.Pickler.dispatch_table
    )


def pickle_plan(plan: Plan) -> bytes:
    """Return a plan as bytes for the workers.

    Raises:
        TopologyError: a node cannot be pickled.
    """
    try:
        return _dumps(plan)
    except Exception as whole:
        for name, node in plan.topology.nodes.items():
            try:
                _dumps(node)
            except Exception as error:
                raise TopologyError(
                    f"node {name} cannot be pickled to the workers of Spark: {error}. Create connections, locks and "
                    "files in the init of a processor, not outside of its functions"
                ) from error
        raise TopologyError(f"the topology cannot be pickled to the workers of Spark: {whole}") from whole


def _dumps(value: Any) -> bytes:
    file = io.BytesIO()
    _Pickler(file).dump(value)  # type: ignore[no-untyped-call]
    return file.getvalue()
