# %% [markdown]
# # Reproduce the paper
#
# `reproduce` computes every figure and table of Carlsson, Basu, Johansson and Dubhashi (AISTATS 2024)
# again, and says of each claim whether we find the same.

# %% [shell]
# simplexplore reproduce --list

# %% [markdown]
# Name parts to run only these. `--runs 50` is a quick look; without it there are as many runs as in
# the paper. What is finished is kept in the folder, so the same command resumes after an interruption.

# %% [shell]
# simplexplore reproduce fig1 --out reproduction
# ls reproduction reproduction/figures

# %% [markdown]
# The report is one page, `reproduction/index.html`, with the claims, our numbers beside them, and the
# figures; `numbers/` has all digits as CSV and JSON.

# %%
import shutil

_ = shutil.copy("reproduction/figures/fig1.png", "figure-1.png")

# %% [markdown]
# [What `reproduce` does](../reproduce.md) has the options, and [what we find](../reproduction.md) has the
# claims of a whole run.
