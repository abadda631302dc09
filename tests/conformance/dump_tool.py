"""Kafka's dump tool many times in one virtual machine, and ours beside it."""

from __future__ import annotations

import contextlib
import io
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pybench.peers import java
from pybroker.cli.main import main

_RUNNER = """\
import java.io.*;
import java.lang.reflect.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;

public class DumpRunner {
    public static void main(String[] arguments) throws Exception {
        Method tool = Class.forName("org.apache.kafka.tools.DumpLogSegments").getMethod("main", String[].class);
        PrintStream out = System.out, err = System.err;
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            ByteArrayOutputStream shown = new ByteArrayOutputStream(), errors = new ByteArrayOutputStream();
            System.setOut(new PrintStream(shown, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(errors, true, StandardCharsets.UTF_8));
            int status = 0;
            try {
                tool.invoke(null, (Object) line.split(" "));
            } catch (InvocationTargetException failed) {
                status = 1;
                System.err.println(failed.getCause().getMessage());
            }
            System.out.flush();
            System.err.flush();
            for (ByteArrayOutputStream bytes : new ByteArrayOutputStream[] {shown, errors}) {
                out.println(bytes.size());
                out.write(bytes.toByteArray());
            }
            out.println(status);
        }
        out.flush();
    }
}
"""


@dataclass(frozen=True, slots=True)
class Dumped:
    """What a run of a dump tool wrote to standard output and to standard error, and its exit status."""

    out: str
    err: str
    status: int


def kafkas(runs: Sequence[Sequence[str]], directory: Path) -> list[Dumped]:
    """Run Kafka's tool with each list of arguments; `directory` takes the program that does."""
    source, lines = directory / "DumpRunner.java", directory / "runs"
    source.write_text(_RUNNER)
    lines.write_text("".join(" ".join(run) + "\n" for run in runs))
    command = [word for word in java.short_java_command(str(source)) if word]
    done = subprocess.run([*command, str(lines)], capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode()
    responses, found = io.BytesIO(done.stdout), []
    for _ in runs:
        out, err = (responses.read(int(responses.readline())).decode() for _ in range(2))
        found.append(Dumped(out, err, int(responses.readline())))
    return found


def ours(run: Sequence[str]) -> Dumped:
    """Run `pybroker dump-log` in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["dump-log", *run])
    return Dumped(out.getvalue(), err.getvalue(), status)
