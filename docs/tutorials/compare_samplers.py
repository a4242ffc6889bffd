# %% [markdown]
# # Compare samplers on many instances
#
# One instance proves little. Here a sampler of your own runs against ours on twenty random instances, and
# you get what a paper needs: a table in LaTeX, a figure in PDF, and the raw data.
#
# `random_instances` draws instances with the kinds of constraints, sizes and hardness that you choose.
# Hardness is the characteristic time. The same seed gives the same instances.

# %%
import simplexplore as sx

instances = sx.random_instances(
    20,
    arms=(4, 6),
    constraints=(1, 3),
    kinds=("groups", "budgets", "ratios"),
    hardness=(20, 100),
    seed=1,
)
instances[0].problem

# %% [markdown]
# `compare` simulates every sampler on every instance. `weakest_edge.py` is the file from the [previous
# tutorial](write_a_sampler.md). With a `folder` an interrupted comparison resumes: what is finished there
# is not run again.

# %%
comparison = sx.compare(
    instances,
    ["top-two", "uniform", "weakest_edge.py"],
    threshold="gk16",
    runs=20,
    max_steps=3000,
    folder="comparison",
)
comparison

# %% [markdown]
# "x bound" is the mean number of samples as a multiple of the lower bound, instance by instance. A run
# that `max_steps` ended is *capped*: how long it would have taken is not known. An instance with capped runs
# counts as farther from the bound than all others.
#
# One picture shows all instances. The **performance profile** says on which share of the instances a
# sampler takes at most x times the bound: higher and farther left is better.

# %%
sx.plot_comparison(comparison, "profile.png")

# %% [markdown]
# For the paper, write the table, the figure as PDF, and every run as CSV. `to_frame` gives the runs as a
# pandas DataFrame.

# %%
comparison.to_latex(
    "table.tex", caption="Twenty random instances.", label="tab:random"
)
sx.plot_comparison(comparison, "profile.pdf")
comparison.to_csv("runs.csv")
frame = comparison.to_frame()
print(frame.groupby("sampler")["stopping_time"].describe().round(1))

# %% [shell]
# cat table.tex
# head -3 runs.csv
