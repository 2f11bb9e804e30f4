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
# # What headroom repays an outage?
#
# A job that can do 50,000 tuples a second gets 45,000. It is away for not quite a minute. How long until
# nothing waits any more?
#
# **What you need to know.** What comes while a job is away waits in a log, the *backlog*. A job that takes
# checkpoints goes back to the last one, and has to do again what came since then. It can do *capacity*
# tuples a second, and has to do those that come new, too: what is left is its *headroom*.

# %%
# %matplotlib inline
import matplotlib.pyplot as plt
import numpy as np

import tideover

# %% [markdown]
# ## One outage
#
# The scenario `flink-recovery` has one job that reads a log. It is killed half-way between two checkpoints,
# which are 60 s apart. After 50 s somebody notices, and the restart takes 5 s. Its capacity is 50,000/s.
# (For now checkpoints take no time.)
#
# **Predict first:** how long is it from the kill until the backlog is gone, at 25,000/s, half of the
# capacity? And at 45,000/s?

# %%
prediction = None, None  # seconds at 25,000/s; at 45,000/s


# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show what was found"}
def recovery(rate, **more):
    """From the failure until the backlog is gone, in seconds."""
    settings = {"rate": f"{rate}/s", "snapshot_time": "0 s"}
    found = tideover.run("flink-recovery", settings | more).recoveries
    return found["time_to_recover_s"].iloc[0]


half, most = recovery(25_000), recovery(45_000)
print(f"predicted {prediction}; found {half:.0f} s and {most:.0f} s")
assert (round(half), round(most)) == (140, 820)

# %% [markdown]
# From half of the capacity to nine tenths of it, the load grows by four fifths, and the recovery becomes
# almost six times as long. Why?
#
# ## The sum
#
# For $D$ = 55 s nobody works. What came in the $P$ = 30 s since the checkpoint comes again. So at the
# restart $(D + P)\,r$ tuples wait, at a rate of $r$. They are served at the capacity $C$, but meanwhile $r$
# new ones come each second: the backlog falls by $C - r$ a second, the headroom. From the kill that is
#
# $$
# T = D + (D + P)\,\frac{r}{C - r}
# $$
#
# At 25,000/s that is $55 + 85 \cdot 1$; at 45,000/s it is $55 + 85 \cdot 9$. The last factor is the load
# divided by the headroom, and it has no bound.


# %%
def law(rate, capacity=50_000, out_s=55, again_s=30):
    return out_s + (out_s + again_s) * rate / (capacity - rate)


rates = [10_000, 25_000, 35_000, 40_000, 45_000, 48_000]
found = np.array([recovery(rate) for rate in rates])
expected = np.array([law(rate) for rate in rates])
print(f"largest distance from the law: {100 * np.abs(found / expected - 1).max():.2f} %")
assert np.abs(found / expected - 1).max() < 0.002

# %% tags=["hide-input"] mystnb={"image": {"alt": "Time to recover over the load, as a part of the capacity"}}
fig, ax = plt.subplots(figsize=(7.4, 3.2), layout="constrained")
load = np.linspace(1_000, 48_800, 500)
ax.plot(load / 500, law(load) / 60, color="#7f8791", linewidth=1.4, label="the sum")
ax.plot(np.array(rates) / 500, found / 60, "o", color="#0072b2", label="simulated")
ax.axhline(5, color="#d55e00", linestyle="--", linewidth=1.2, label="five minutes")
ax.set(xlabel="load, % of the capacity", ylabel="time to recover (min)", ylim=(0, 40), xlim=(0, 100))
ax.legend(frameon=False, loc="upper left")
ax.spines[["top", "right"]].set_visible(False)

# %% [markdown]
# *What to see.* A shelf and a cliff. Up to almost three quarters of the capacity five minutes are enough
# (dashed). There a percentage point more costs 13 s; at nine tenths it costs a minute and a half.
#
# Turned round, the sum tells how much headroom a promise needs: for $T \le 300$ s, $r / (C - r) \le 245 /
# 85$, so $r$ is at most 74 % of $C$: 26 % of headroom.

# %% tags=["hide-input"]
allowed = 245 / 85 / (1 + 245 / 85)
assert round(100 * allowed) == 74
assert [round(law(at + 500) - law(at)) for at in (500 * 74, 45_000)] == [13, 94]
assert recovery(round(50_000 * allowed) - 100) < 300 < recovery(round(50_000 * allowed) + 200)

# %% [markdown]
# ## Which hour?
#
# Load follows the day. `shop.yaml` has the clicks of a shop: 50,000/s at 18:00, an eighth of that at night.
# Its eight tasks can do 80,000/s together. A task crashes; for 14 s nobody works. A snapshot is taken every
# 20 s, and as the moments are drawn here 14 s come again on average.
#
# **Predict first:** how many times as long is the recovery at 18:00 as at 04:00?

# %%
prediction = None  # a factor

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show what was found"}
hours = ["04:00", "12:00", "18:00"]
day = tideover.hours("../examples/shop.yaml", hours, {"run.replications": 2})
every = day.frame.query("measure == 'time_to_recover_s'").set_index("time")
print(f"predicted {prediction}")
print(every[["rate_per_s", "mean"]].round(1).to_string())
print(f"{every['mean'].iloc[2] / every['mean'].iloc[0]:.1f} times")

# %% tags=["hide-input"]
rate, took = every["rate_per_s"].to_numpy(), every["mean"].to_numpy()
assert 3.4 < took[2] / took[0] < 4.2 and round(rate[2] / rate[0]) == 8
by_hand = law(rate, capacity=79_600, out_s=14, again_s=14)
assert np.abs(took / by_hand - 1).max() < 0.02

# %% [markdown]
# Eight times the load, not quite four times the time: at night most of it is the 14 s in which nobody
# works, and which no headroom shortens. At 18:00 there are two ways to gain: more headroom, and earlier
# notice, of which each second saves $C / (C - r)$ = 2.7 s, as what came in it is not to be repaid. And a
# restart that can wait, such as a deployment, belongs in the night.
#
# ## Exercise
#
# A job can do 10,000 tuples a second, and gets 9,950. It is killed as above (55 s, 30 s). How long does the
# recovery take? And why does the simulator say half as much again if each checkpoint keeps the job for 0.1
# s, a sixth of a per cent of its time?

# %%
prediction = None  # hours

# %% [markdown]
# <details><summary>Answer</summary>
#
# $55 + 85 \cdot 9{,}950 / 50$ is 16,970 s: 4.7 hours after less than a minute. The checkpoints take 0.1 s
# in 60, so 16.7 tuples a second of the capacity: next to nothing of 10,000, and a third of the 50 that are
# left. With 33.3 to spare it is 7.1 hours (7.0 simulated). Close to the capacity, headroom is a difference
# of two large numbers, and everything small is large.
#
# </details>

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show what was found"}
near = {"capacity": "10000/s", "run.duration": "30000 s"}
free, taken = (recovery(9_950, **near, snapshot_time=time) for time in ("0 s", "0.1 s"))
print(f"{free / 3600:.1f} h, and {taken / 3600:.1f} h with checkpoints of 0.1 s")
assert round(law(9_950, 10_000)) == 16_970 and abs(free / 16_970 - 1) < 0.002
assert abs(taken / law(9_950, 10_000 - 10_000 * 0.1 / 60) - 1) < 0.005
assert (round(free / 3600, 1), round(taken / 3600, 1)) == (4.7, 7.0)

# %% [markdown]
# ## To read
#
# - L. Kleinrock, *Queueing Systems*, volume 1, 1975: what happens to queues as the load nears the capacity.
# - Which hours hurt, and how the load of a day is simulated: *A failure at 18:00, and one at 04:00* on this
#   site.
# - Play with it: `tideover explore flink-recovery`, and move the rate.
