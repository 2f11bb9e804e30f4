"""Transactions of a sink that a broker aborts, or does not grant."""

from __future__ import annotations

from tideover.models.job.sinks.base import Terms
from tideover.models.job.sinks.transactional import BROKERS_LIMIT
from tideover.models.remarks.plan import Plan
from tideover.models.remarks.saving import Saving, job_takes
from tideover.sim.units import S

_KEY = "sink.transaction_timeout"


def too_short(plan: Plan, terms: Terms | None, saving: Saving, upload: int) -> list[str]:
    """Remarks if transactions may be aborted before they are committed: without a failure, since each is open
    for an interval of ``saving``, and until all is saved (``upload``: see `saving.job_takes`); or in an
    outage of a failure that is planned. And if a broker grants none that are so long.
    """
    if terms is None:
        return []
    timeout, remarks = terms.timeout, []
    if timeout > BROKERS_LIMIT:
        remarks.append(
            f"{_KEY} {timeout / S:g} s: a Kafka broker refuses more than {BROKERS_LIMIT / S:g} s, unless its "
            "transaction.max.timeout.ms is raised"
        )
    opened = saving.interval + job_takes(plan, saving, upload) + terms.commit_time
    if timeout <= opened:
        remarks.append(
            f"{_KEY} {timeout / S:g} s: a transaction is open for up to {opened / S:.4g} s ({saving.key}, "
            "the snapshot, the commit): the broker aborts it though nothing fails, and its output is lost"
        )
        return remarks
    for i, fault in enumerate(plan.failures):
        if fault.kills and terms.commit_time and fault.lasts + terms.commit_time >= timeout:
            remarks.append(
                f"failures.{i}: the outage of {fault.lasts / S:.4g} s outlasts {_KEY} {timeout / S:g} s: "
                "what a complete snapshot has not yet committed when it strikes (for "
                f"{terms.commit_time / S:g} s after each) is lost"
            )
            break
    return remarks
