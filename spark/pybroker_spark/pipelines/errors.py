"""What a job ends with when it cannot do what it was asked for.

    JobError          one line for the user, exit status 1
    └── UsageError    an option's value cannot work; nothing was read or written; exit status 2

Every message names the option, the value and what would be right. Knows no Spark.
"""

from __future__ import annotations


class JobError(Exception):
    """The job failed; the text is all that the user sees."""

    status = 1


class UsageError(JobError):
    """An option's value cannot work."""

    status = 2
