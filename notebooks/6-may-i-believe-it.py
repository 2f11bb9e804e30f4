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
# # May I believe it?
#
# A simulator always answers. When is the answer worth something? Here are three tests, each harder than the
# one before, and what they say of this one.
#
# **What you need to know.** A number that a model was *fitted* to says little for the model: it was made to
# come out. A number that it *predicts* does. So ask of each agreement: who has seen it before?

# %%
# %matplotlib inline
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import tideover
from tideover.calibrate.recoveries import fit, read
from tideover.reports.published import group

# %% [markdown]
# ## First test: a paper's table
#
# Stableford (2015) lost the state of a word count on Apache Storm, 5, 15 and 30 s into a window, at 10 and
# 20 sentences a second, under two strategies: twelve times to recover. His log has whole seconds, so a time
# may be off by one.
#
# **Predict first:** the simulator knows Storm's protocol, and two constants, chosen for this table: the
# interval of R+SM's checkpoints (5 s), and what a word costs that is sent again (3.1 ms). How many of the
# twelve can it meet, to a second? And how many of those would you count?

# %%
prediction = None, None  # of twelve; that count

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show what was found"}
paper = group("stableford", "recovery")


def simulated(strategy, rate, into):
    settings = {"strategy.kind": strategy, "topology.sentences.rate": f"{rate}/s", "run.replications": 3}
    settings |= {"failures.0.at": f"{60 + into} s", "run.log_resolution": None}
    return tideover.run("stableford-phase2", settings).recoveries["state_recovery_s"].mean()


table = pd.DataFrame(paper.rows, columns=[*paper.keys, "published_s"])
keys = table[paper.keys].itertuples(index=False)
table["simulated_s"] = np.round([simulated(*key) for key in keys], 1)
met = (table["simulated_s"] - table["published_s"]).abs() <= 1
print(f"predicted {prediction}; met {met.sum()} of {len(table)}")
table

# %% tags=["hide-input"]
assert met.all() and len(table) == 12
acked = table["strategy"] == "source_replay"
assert table.loc[acked, "simulated_s"].between(59.5, 60.5).all()

# %% [markdown]
# All twelve. But the two constants were chosen so that R+SM's six come out: those are fitted. The six of
# source replay had no constant to turn: windows and timeout are the paper's, and the 60 s follow (lesson
# 1). They count; and they could have failed.
#
# ## Second test: real kills that the fit has not seen
#
# `examples/recoveries.csv` has ten kills of real PySpark queries: two ways to recover, four rates, the time
# until the backlog was gone. The simulator does not know this machine, so three things are fitted for each
# way: how long the job is *out*, its *capacity*, and what a snapshot takes.
#
# A fit to five points with three numbers looks better than it is. So each point is predicted from the
# others: it is *held out*.
#
# **Predict first:** which error is larger: on points that were fitted, or on those held out? By which
# factor?

# %%
prediction = None  # a factor

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show what was found"}
calibration = fit(read(Path("../examples/recoveries.csv")))
points, errors = calibration.frames["points"], calibration.frames["errors"]
mine = errors[errors["model"] == "mechanism"].pivot(index="workload", columns="kind", values="mean_error")
print(f"predicted {prediction}; found {(mine['leave_one_out'] / mine['fit']).round(1).tolist()}")
(100 * mine[["fit", "leave_one_out"]]).round(1)

# %% tags=["hide-input"]
assert (mine["leave_one_out"] > 1.2 * mine["fit"]).all()
assert mine["fit"].between(0.04, 0.08).all() and mine["leave_one_out"].between(0.06, 0.1).all()

# %% tags=["hide-input"] mystnb={"image": {"alt": "Measured times beside predicted and fitted ones"}}
fig, axes = plt.subplots(1, 2, figsize=(7.4, 3.1), layout="constrained", sharey=True)
for ax, (name, part) in zip(axes, points.groupby("workload"), strict=True):
    ax.plot(part["rate_per_s"], part["measured_s"], "o", color="#1b2026", label="measured")
    ax.plot(
        part["rate_per_s"], part["left_out_s"], "x", color="#d55e00", label="predicted without this point"
    )
    ax.plot(part["rate_per_s"], part["fitted_s"], "s", mfc="none", color="#0072b2", label="fitted to it")
    ax.set(title=name, xlabel="tuples/s", ylim=(0, 24))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("time to recover (s)")
_ = fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
# %% [markdown]
# *What to see.* Squares (fitted) are on the whole nearer to the dots than crosses (held out) are. The
# crosses are what you would have been told before you tried: off by eight per cent in the mean, one to two
# seconds of twenty, and once by five.
#
# ## Third test: would something simpler do as well?
#
# The *plain fluid law* (lesson 5) knows no snapshots and no windows. *The mean* knows nothing: it predicts
# each time by the average of the other four. If they err no more, the mechanism has not earned its place on
# these data.
#
# **Predict first:** which of the three errs least?

# %%
prediction = None

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show what was found"}
held_out = errors[errors["kind"] == "leave_one_out"].pivot(
    index="workload", columns="model", values="mean_error"
)


def mean_of_others(measured):
    return np.abs((measured.sum() - measured) / (len(measured) - 1) / measured - 1).mean()


held_out["mean"] = points.groupby("workload")["measured_s"].apply(mean_of_others)
print(f"predicted {prediction}")
(100 * held_out).round(1)

# %% tags=["hide-input"]
assert not errors["better"].eq(True).any()
parameters = calibration.frames["fit_parameters"]
assert set(parameters.query("not identified")["parameter"]) == {"catch_up_capacity", "fraction", "snapshot"}
can_do = parameters.query("workload == 'micro-batch' and parameter == 'catch_up_capacity'")["value"].iloc[0]
assert 16_500 < can_do < 18_500
assert (held_out["mean"] < 0.85 * held_out["mechanism"]).all()
catch_up = [(20.4 * (1 - 4_000 / can_do)) * 4_000 / (other - 4_000) for other in (can_do, 30_000)]
assert [round(each) for each in catch_up] == [5, 2]

# %% [markdown]
# The one that knows nothing. The mechanism has not earned its place here, nor has the law (that the one is
# a little better than the other is chance). With ten points from 18 s to 22 s, whose repetitions at 3,000/s
# are more than a second apart, there is hardly anything to explain: at most 4,000 a second, a job that can
# do 17,000 catches up in 5 s of the 20, and one that can do 30,000 would need 2. So the fit says itself
# that the capacity is not `identified`, and that for other intervals between snapshots its predictions are
# guesses. What these data do tell is about how long the job is out, which is most of the time to recover. A
# model earns its place where the answer changes: near the capacity (lesson 5), and there nobody has
# measured here.
#
# So believe the protocol's numbers where the protocol decides; measure what your machine decides; and ask
# for predictions where you will be, not where you have been.
#
# ## Exercise
#
# You have measured up to 3,500/s, and next month there will be 4,000. Fit without the highest rate, and
# predict it. **Predict first:** is the error larger or smaller than when any one point is left out?

# %%
prediction = None

# %% [markdown]
# <details><summary>Answer</summary>
#
# Not larger: 2 % for one way, 8 % for the other, a third of a second and a second and a half. It can go
# well because 4,000 is near to 3,500, and far from the capacity. Near that the time to recover is ruled by
# just what these data do not tell: the same fit would have nothing to say of 15,000.
#
# </details>

# %% tags=["hide-cell"] mystnb={"code_prompt_show": "Show what was found"}
beyond = errors.query("kind == 'leave_top_rate_out' and model == 'mechanism'").set_index("workload")
print((100 * beyond["mean_error"]).round(1).to_string())
assert beyond["mean_error"].between(0.01, 0.09).all()
assert (beyond["mean_error_s"] < 2).all()

# %% [markdown]
# ## To read
#
# - A. M. Law, *Simulation Modeling and Analysis*, chapter 5: building valid and credible models.
# - T. Stableford, *Implementing operator state checkpoint based fault-tolerance in Apache Storm*, City
#   University London, 2015, section 9.3: the table.
# - On this site: *Validation* (each published figure: fitted, predicted, or missed) and *Calibration*.
# - Play with it: `tideover explore stableford-phase2`.
