# %% [markdown]
# # Run one live
#
# A **live study** says which arm to play, you play it and tell what came of it, until the study has its
# answer. It lives in a file; every process that opens it sees the same study, and nothing that was
# acknowledged is lost. Means are not needed: they are what you are looking for.

# %% [shell]
# simplexplore study create meal.toml --name lunch --store lunch.db
# simplexplore study ask lunch -n 3 --store lunch.db

# %% [markdown]
# Each line is a pull: its id, and the dish to serve. Tell its reward under that id; a file with the
# columns `pull` and `reward` does for many. From Python it is the same, here with a kitchen that we
# make up and that only this script can look into:

# %%
import random

import simplexplore as sx

random.seed(7)
TASTE = {"pizza": 8.0, "salmon": 7.5, "lentils": 6.0}


def served(dish):
    return random.gauss(TASTE[dish], 2.0)


study = sx.Study.open("lunch.db", "lunch")
for _ in range(5):
    pulls = study.ask(20)
    study.tell_many([(pull, served(pull.arm)) for pull in pulls])
study

# %% [markdown]
# **Pulls under way count.** Ask for twenty before the first result is in, and they are spread as if each
# had been told. A pull whose result never comes *expires* after a day (`--expire-after`), and its arm
# may be asked for again; if the result turns up later, it still counts.
#
# `status` may be looked at as often as you like: the confidence it states holds at every moment.

# %% [shell]
# simplexplore study status lunch --store lunch.db

# %% [markdown]
# Go on until it stops by itself:

# %%
while not study.stopped:
    study.tell_many([(pull, served(pull.arm)) for pull in study.ask(50)])
print(study.answer_in_words)

# %% [markdown]
# The answer is wrong with probability at most delta, whatever the moment it came. All data can be
# exported, for your own analysis:

# %% [shell]
# simplexplore study export lunch lunch.csv --store lunch.db
# head -3 lunch.csv

# %% [markdown]
# Next: [serve a team](serve_a_team.md), so that workers on other machines join, and people watch in
# a browser. [Live studies](../live_studies.md) has every rule.
