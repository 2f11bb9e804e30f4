"""What each attempt of a transaction reads, by the kind of spout.

Apache Storm, docs/Trident-spouts.md; ``PartitionedTridentSpoutExecutor`` (a transaction's content is written
down before it is emitted), ``OpaquePartitionedTridentSpoutExecutor`` (how far it has read, when it commits),
``RichSpoutBatchExecutor`` (nothing; tuples are acknowledged, or failed, batch by batch).
"""

from __future__ import annotations

from tideover.models.mechanisms.trident.attempt import Attempt
from tideover.models.mechanisms.trident.partitions import Content, Partitions, is_away
from tideover.models.mechanisms.trident.settings import TridentSettings


class Source:
    """A spout without promises.

    writes_last  whether it writes down how far it has read when a transaction commits
    """

    writes_last = False

    def __init__(self, settings: TridentSettings) -> None:
        self.waiting = Partitions()
        self._loses = settings.failed_batches == "lost"

    def read(self, txid: int) -> Content:
        """What an attempt of this transaction reads; nothing: it does not begin."""
        return self.waiting.take()

    def writes_first(self, txid: int) -> bool:
        """Whether a transaction's content is to be written down before it is emitted."""
        return False

    def written(self, attempt: Attempt) -> None:
        """What a transaction reads is written down."""

    def comes_again(self, attempt: Attempt) -> bool:
        """Whether what an attempt has read does, if it is given up."""
        return not attempt.updated

    def give_up(self, attempt: Attempt) -> Content:
        """An attempt, of which all comes again, is given up; returns what is lost all the same."""
        if self._loses:
            return attempt.content
        self.waiting.put_back(attempt.content)
        return {}

    def committed(self, txid: int) -> None:
        """A transaction will not be read again."""

    @property
    def logged(self) -> list[Content]:
        """Contents of transactions that are not under way."""
        return []

    @property
    def size(self) -> int:
        """Rows that are kept, and are in no attempt that is under way."""
        return self.waiting.size + sum(t.n for content in self.logged for t in content.values())


class OpaqueSource(Source):
    """Each tuple is in one committed batch, not always the one in which it was first."""

    writes_last = True

    def comes_again(self, attempt: Attempt) -> bool:
        return True

    def give_up(self, attempt: Attempt) -> Content:
        self.waiting.put_back(attempt.content)
        return {}


class TransactionalSource(OpaqueSource):
    """A transaction always has the same content."""

    writes_last = False

    def __init__(self, settings: TridentSettings) -> None:
        super().__init__(settings)
        self._contents: dict[int, Content] = {}
        self._under_way: set[int] = set()

    def read(self, txid: int) -> Content:
        if txid not in self._contents:
            return super().read(txid)
        content = self._contents[txid]
        if any(is_away(partition) for partition in content):
            return {}
        self._under_way.add(txid)
        return content

    def writes_first(self, txid: int) -> bool:
        return txid not in self._contents

    def written(self, attempt: Attempt) -> None:
        self._contents[attempt.txid] = attempt.content
        self._under_way.add(attempt.txid)

    def give_up(self, attempt: Attempt) -> Content:
        if attempt.txid not in self._contents:
            return super().give_up(attempt)
        self._under_way.discard(attempt.txid)
        return {}

    def committed(self, txid: int) -> None:
        del self._contents[txid]
        self._under_way.discard(txid)

    @property
    def logged(self) -> list[Content]:
        return [content for txid, content in self._contents.items() if txid not in self._under_way]


SOURCES: dict[str, type[Source]] = {
    "non_transactional": Source,
    "transactional": TransactionalSource,
    "opaque": OpaqueSource,
}
