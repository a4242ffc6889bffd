# %% [markdown]
# # Write a sampler
#
# A sampler is one file with one function: given the data so far, it writes into `run.w` which share of the
# samples each arm should get. Everything else (tracking, stopping, recommendation) is shared, so a
# comparison compares samplers and nothing else. This one samples the arms of the comparison with the
# least evidence:

# %% [shell]
# sed -n '/^@njit/,$p' weakest_edge.py | head -30

# %% [markdown]
# It is compiled like ours. Name it by its path wherever a sampler is asked for: in `simulate`, in `compare`
# and in `Explorer`.

# %%
import simplexplore as sx

star = sx.catalog.instance("star").problem
results = [
    sx.simulate(star, sampler=sampler, threshold="gk16", runs=100, seed=0)
    for sampler in ("weakest_edge.py", "top-two", "uniform")
]
for result in results:
    times = result.summary()["stopping_time"]
    print(
        f"{result.plan.sampler.name:12} {times['mean']:7.0f} ± {times['stderr']:.0f} samples"
    )
sx.plot_results(results, "samplers.png")

# %% [markdown]
# [Write your own sampler](../write_your_own_sampler.md) explains every line and what you can call. The next
# tutorial [compares it on many instances](compare_samplers.md).
