# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What lies between two checkpoints?
#
# A task saves its state once a second, and crashes half a second after that. Its state of half a second ago
# is safe. What about the half second?
#
# **What you need to know.** A *checkpoint* is a copy of a task's state in a store that survives the task;
# after a crash the task restores the last one. What it has taken in since then is in no checkpoint, and
# what is sent to it while it is down reaches nobody: both must come again, from somebody who has kept it.

# %%
# %matplotlib inline
import matplotlib.pyplot as plt
import numpy as np
from IPython.display import HTML

import tideover
from tideover.models.accounts.trace import Stretch
from tideover.models.operators.kinds import SENTENCES
from tideover.models.simulation import watch
from tideover.reports import pages

S = 1_000_000_000  # Tideover's instants are integer nanoseconds
AROUND = Stretch(int(1.8 * S), int(3.5 * S))  # what we look at

# %% [markdown]
# ## A world small enough to see each message
#
# `sentences` emits one sentence every 0.2 s (at 2.02 s, 2.22 s, 2.42 s, …; we say 2.0, 2.2, 2.4). `split`
# makes 3, 4 or 7 words of each, `count` counts them. A message is 30 ms on its way. `count` crashes at 2.55
# s, and is up again at 2.95 s.

# %%
crash = {"failures.0.at": "2.55 s"}
crash |= {"failures.0.detection": "200 ms", "failures.0.restart": "200 ms"}
longer = {"topology.count.window": "1 min", "run.duration": "8 s"}
world = tideover.load("../examples/small-word-count.yaml").with_(longer | crash)
costs = {"checkpoint_interval": "1 s", "restore_time": "40 ms"}
rsm_costs = costs | {"serialise_time": "10 ms", "replay_cost": "5 ms"}
rsm = world.with_({"strategy": {"kind": "rsm", **rsm_costs}})
flink_costs = costs | {"snapshot_time": "10 ms"}
snapshots = world.with_({"strategy": {"kind": "aligned_snapshots", **flink_costs}})

# %% [markdown]
# ## R+SM: the sender keeps
#
# Under R+SM (recovery using state management) each task with state saves it by itself, here at 1 s, 2 s, 3
# s, …; and who sends to it keeps what it has sent in a *buffer*, until a checkpoint has it.
#
# **Predict first:** of which sentences must `split` send the words again? Name the moments at which they
# were emitted.

# %%
prediction = set()  # such as {1.8, 2.0}


# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show what was found"}
def sent_again(world):
    """Of which roots something is sent again (their moments); how many messages."""
    result = tideover.run(world, trace=True)
    emitted = {root: round(at / S, 1) for _, _, root, _, at in result.traces[0].emitted}
    arrows = watch(result.scenario, 0, Stretch(0, 8 * S)).arrows
    again = [emitted[arrow.whole[1]] for arrow in arrows if arrow.again]
    return sorted(set(again)), len(again)


by_rsm, words = sent_again(rsm)
print(f"predicted {sorted(prediction)}; found {by_rsm}: {words} words")
assert (by_rsm, words) == ([2.0, 2.2, 2.4, 2.6, 2.8], 20)

# %%
result = tideover.run(rsm, trace=True)
HTML(pages.of_result(result, AROUND, inline=True))

# %% [markdown]
# *What to see.* Time goes to the right, each arrow is a message (×4: four in one); put the pointer on one
# to read its name. `count` copies its state at 2 s (a); 11 ms later the copy is in the store (b), and only
# then `split` empties its buffer (c). The words of 2.0, 2.2 and 2.4 are counted, and gone with the crash.
# Those of 2.6 and 2.8 find nobody (crosses). Back at 2.95 s, `count` asks for its state (d), restores it
# (e) and asks for the rest (f): `split` sends all twenty words once more (g).

# %% tags=["hide-input"]
told = {step.what: step for step in result.traces[0].steps if step.at < 3 * S}
assert told["checkpoint taken"].at == 2 * S and round(told["checkpoint saved"].at / S, 3) == 2.011
assert told["buffer trimmed"].at == told["checkpoint saved"].at
assert told["checkpoint asked for"].at == 2.95 * S and "20 tuples" in told["buffer replayed"].text
undone = sum(
    c == "count" and 2 * S < left < 2.55 * S for c, _, _, _, _, _, left in result.traces[0].processed
)
assert (undone, len(result.traces[0].destroyed)) == (12, 8)

# %% [markdown]
# So two things lie between: 12 words that were *in the state* and were not in its copy, and 8 that were
# *sent into the void*. For the buffer there is no difference: it has all that no checkpoint has.
#
# ## Snapshots: only the source keeps
#
# In Flink no task keeps what it has sent. There is what the source can read again (a log, as in Kafka), and
# takes a snapshot of all tasks together: a *barrier* flows with the messages, and each task copies its
# state when the barrier comes by. What is before the barrier is in the snapshot, everywhere; what is behind
# it, nowhere.
#
# **Predict first**, for the same crash: which sentences does the source send again? And who is down?

# %%
prediction = set(), set()  # moments; names of tasks

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show what was found"}
by_snapshots, sentences = sent_again(snapshots)
result = tideover.run(snapshots, trace=True)
print(f"predicted {prediction}; found {by_snapshots}: {sentences} sentences")
assert (by_snapshots, sentences) == ([2.0, 2.2, 2.4], 3)
HTML(pages.of_result(result, AROUND, inline=True))

# %% [markdown]
# *What to see.* At 2 s the coordinator asks for a snapshot (a); its barrier (blue, dashed) goes from
# `split` to `count`, and the snapshot is complete 41 ms later (d). The crash of `count` takes `split` down
# with it, in this model at once: all go back to the same barrier, as nobody but the source could send
# `count` again what it has forgotten. The source sends the three sentences behind the barrier again
# (thick). Those of 2.6 and 2.8 are not sent again: they wait in the log (the long arrows), and come for the
# first time. And `split` has to split once more.

# %% tags=["hide-input"]
told = {step.what: step for step in result.traces[0].steps if step.at < 3 * S}
assert told["snapshot triggered"].at == 2 * S and round(told["snapshot complete"].at / S, 3) == 2.041
assert not result.traces[0].destroyed and result.recoveries.iloc[0].replayed == 12
split_again = [uid for c, _, _, uid, _, _, _ in result.traces[0].processed if c == "split"]
assert len(split_again) - len(set(split_again)) == 3

# %% [markdown]
# | | R+SM | snapshots |
# |---|---|---|
# | who keeps what lies between | the sender of each task, in memory | the source, in its log |
# | who goes back | the task that crashed | all, and the source to where it was then |
# | what comes again | what was undone, and what was sent into the void | what was undone |
# | here | 20 words, from `split` | 3 sentences, from the source; 12 words at `count` |
#
# ## How far back?
#
# Let the last checkpoint that counts be at $c$, the crash at $t$, the outage $d$ long (0.4 s), and let $r$
# words a second arrive, here about 20. Under R+SM $r\,(t - c + d)$ words come again, under snapshots $r\,(t
# - c)$.
#
# **Predict first:** if the crash may come at any moment, how many are that in the mean?

# %%
prediction = None, None  # words at `count`: R+SM, snapshots

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show what was found"}
moments = np.arange(2.06, 5.01, 0.06).round(2)


def words_again(world):
    runs = [tideover.run(world.with_({"failures.0.at": f"{t} s"})) for t in moments]
    return np.array([run.recoveries.iloc[0].replayed for run in runs])


again = {"R+SM": words_again(rsm), "snapshots": words_again(snapshots)}
laws = {"R+SM": (0.4, 0.011), "snapshots": (0.0, 0.041)}  # the outage; until a copy counts
print("predicted", prediction, "found", [float(each.mean().round(1)) for each in again.values()])
for name, (outage, saving) in laws.items():
    c = np.floor(moments - saving)
    assert np.abs(again[name] - 20 * (moments - c + outage)).max() <= 7  # one sentence

# %% tags=["hide-input"] mystnb={"image": {"alt": "Words sent again over the moment of the crash: saw teeth"}}
fig, ax = plt.subplots(figsize=(7.4, 3.0), layout="constrained")
looks = {"R+SM": ("#0072b2", "s", "-"), "snapshots": ("#d55e00", "v", "--")}
for name, (colour, marker, line) in looks.items():
    ax.plot(moments, again[name], marker, color=colour, markersize=4, label=f"{name}, simulated")
    outage, saving = laws[name]
    for c in (2, 3, 4):
        ends = np.array([c + saving, c + 1 + saving])
        ax.plot(ends, 20 * (ends - c + outage), line, color=colour, label="law" if c == 2 else None)
for c in (2, 3, 4, 5):
    ax.axvline(c, color="#7f8791", linewidth=0.8, linestyle=":", label="checkpoint" if c == 2 else None)
ax.set(xlabel="moment of the crash (s)", ylabel="words that come again", ylim=(0, 35), xlim=(1.95, 5.1))
fig.legend(loc="outside lower center", ncols=5, frameon=False)
ax.spines[["top", "right"]].set_visible(False)

# %% [markdown]
# *What to see.* Saw teeth: what comes again grows by 20 words a second until the next checkpoint counts,
# and begins anew. By the law it is 10 words in the mean, half an interval's, and under R+SM 18, with the 8
# of the outage. Simulated it is 13 and 20: a checkpoint counts a little later than it is taken, and words
# come by the sentence, so that no single crash need fit. With half the interval the teeth are half as high,
# and there are twice as many checkpoints to pay for: `tideover interval` finds the best.

# %% tags=["hide-input"]
assert [round(float(again[name].mean())) for name in again] == [20, 13]
assert {len(sentence.split()) for sentence in SENTENCES} == {3, 4, 7}

# %% [markdown]
# ## Exercise: move the failure, mark what comes again
#
# (a) The crash at 3.4 s (up again at 3.8 s). (b) The crash at 3.005 s (up again at 3.405 s): `count` has
# copied its state 5 ms before. For both: which sentences under R+SM, which under snapshots? A word reaches
# `count` 0.08 s after its sentence was emitted.

# %%
marked = {("3.4 s", "R+SM"): set(), ("3.4 s", "snapshots"): set()}
marked |= {("3.005 s", "R+SM"): set(), ("3.005 s", "snapshots"): set()}

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show how many are right"}
found = {}
for at, name in marked:
    moved = {"R+SM": rsm, "snapshots": snapshots}[name].with_({"failures.0.at": at})
    found[at, name] = set(sent_again(moved)[0])
    right = len(marked[at, name] & found[at, name])
    wrong = len(marked[at, name] - found[at, name])
    of = len(found[at, name])
    print(f"crash at {at}, {name}: {right} of {of} marked, {wrong} too many")

# %% tags=["hide-cell"]
for (at, name), moments_again in found.items():
    print(f"crash at {at}, {name}: {sorted(moments_again)}")
late = tideover.run(rsm.with_({"failures.0.at": "3.005 s"}), trace=True)
assert found["3.4 s", "R+SM"] == {3.0, 3.2, 3.4, 3.6} and found["3.4 s", "snapshots"] == {3.0, 3.2}
assert found["3.005 s", "R+SM"] == {2.0, 2.2, 2.4, 2.6, 2.8, 3.0, 3.2}
assert found["3.005 s", "snapshots"] == {2.0, 2.2, 2.4, 2.6, 2.8}
HTML(pages.of_result(late, Stretch(int(1.9 * S), int(3.8 * S)), inline=True))

# %% [markdown]
# <details>
# <summary>Answer</summary>
#
# (a) The last checkpoint is that of 3 s. Counted since then: 3.0 and 3.2. While `count` is down come the
# words of 3.4 and 3.6. So R+SM sends 3.0, 3.2, 3.4, 3.6 again, snapshots 3.0 and 3.2.
#
# (b) A checkpoint counts when it is *in the store*, a snapshot when it is *complete*. At 3.005 s neither
# is: the state of 2 s is restored. R+SM sends 2.0 to 2.8 (counted) and 3.0, 3.2 (sent into the void) again,
# snapshots 2.0 to 2.8. That is the tip of the tooth. Had `split` emptied its buffer when the copy was
# taken, and not when it was saved, five sentences would be lost.
#
# </details>
#
# ## To read
#
# - R. Castro Fernandez et al., *Integrating Scale Out and Fault Tolerance in Stream Processing using
#   Operator State Management*, SIGMOD 2013, section 4: checkpoints, buffers, when they are trimmed.
# - P. Carbone et al., *State Management in Apache Flink*, PVLDB 10(12), 2017, section 3: snapshots by
#   barriers.
# - K. M. Chandy and L. Lamport, *Distributed Snapshots*, TOCS 3(1), 1985: why a cut has to be consistent.
# - `docs/diagram.md`: how to read the space-time diagram, and how to make one of a run of your own.
# - Play with it: `tideover explore wordcount`, choose R+SM and aligned snapshots, and move the checkpoint
#   interval and the moment.
