"""One library's round with one codec, for `pybench compare`: `python -m micro.codec_rounds PEER CODEC BATCHES`.

Prints JSON: microseconds to build a batch, and to check one that kafka-python built; the best of a few runs of each, as
such short work is only ever slowed down by what else runs.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence

from micro.codecs import VALUES, build, check

_RUNS = 5


def best_us(work: Callable[[], object], times: int) -> float:
    """Microseconds of one `work`, in the best of the runs that share `times`."""
    each, best = max(1, times // _RUNS), float("inf")
    for _ in range(_RUNS):
        begun = time.perf_counter()
        for _ in range(each):
            work()
        best = min(best, time.perf_counter() - begun)
    return best / each * 1e6


def main(words: Sequence[str]) -> None:
    """Measure and print."""
    peer, codec, batches = words[0], words[1], int(words[2])
    begun = time.perf_counter()
    batch, read = build("kafka_python", codec), check(peer)
    if read(batch) != len(VALUES) or check("kafka_python")(build(peer, codec)) != len(VALUES):
        raise SystemExit(f"{peer} and kafka-python do not read each other's batches")
    figures = {
        "build_us": best_us(lambda: build(peer, codec), batches),
        "check_us": best_us(lambda: read(batch), batches),
        "records": batches * len(VALUES),
        "bytes": batches * sum(map(len, VALUES)),
    }
    print(json.dumps(figures | {"seconds": time.perf_counter() - begun}))


if __name__ == "__main__":
    main(sys.argv[1:])
