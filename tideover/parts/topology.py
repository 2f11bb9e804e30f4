"""Components and what they are made of, as typed objects: spouts, arrivals, bolts, windows, groupings."""

from tideover.models.job import components, queues
from tideover.models.job.arrivals import burst, day, periodic, poisson, ramp, saturating, trace
from tideover.models.job.backends import memory, rocksdb
from tideover.models.job.groupings import direct, every, fields, shuffle, single
from tideover.models.job.sources import kafka, kestrel
from tideover.models.job.spouts import keys, sentences, values
from tideover.models.operators import (
    distinct,
    filter,
    forward,
    generic,
    running_count,
    split_words,
    window,
    windowed_count,
    windowed_join,
)
from tideover.parts.typed import typed

Kafka = typed(kafka.Kafka)
Kestrel = typed(kestrel.Kestrel)
QueueSettings = typed(queues.QueueSettings)
Memory = typed(memory.Memory)
RocksDB = typed(rocksdb.RocksDB)
BoltConfig = typed(components.BoltConfig)
SpoutConfig = typed(components.SpoutConfig)
Keys = typed(keys.Keys)
Sentences = typed(sentences.Sentences)
Values = typed(values.Values)
Burst = typed(burst.Burst)
Day = typed(day.Day)
Periodic = typed(periodic.Periodic)
Poisson = typed(poisson.Poisson)
Ramp = typed(ramp.Ramp)
Saturating = typed(saturating.Saturating)
TraceOfRates = typed(trace.TraceOfRates)
Distinct = typed(distinct.Distinct)
Filter = typed(filter.Filter)
Forward = typed(forward.Forward)
Generic = typed(generic.Generic)
RunningCount = typed(running_count.RunningCount)
SplitWords = typed(split_words.SplitWords)
Window = typed(window.Window)
WindowedCount = typed(windowed_count.WindowedCount)
WindowedJoin = typed(windowed_join.WindowedJoin)
Direct = typed(direct.Direct)
All = typed(every.All)
Fields = typed(fields.Fields)
Shuffle = typed(shuffle.Shuffle)
Global = typed(single.Global)
