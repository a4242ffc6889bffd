# %% [markdown]
# # Run one live
#
# A **live study** says which arm to play. You play it and tell the study the reward, until it has its
# answer. A study lives in a file. Every process that opens the file sees the same study, and nothing that
# was acknowledged is lost. The problem file needs no means: they are what you are looking for.

# %% [shell]
# simplexplore study create meal.toml --name lunch --store lunch.db
# simplexplore study ask lunch -n 3 --store lunch.db

# %% [markdown]
# Each line is a pull: its id, and the dish to serve. Tell the reward under that id, one at a time
# (`simplexplore study tell lunch ID 7.5 --store lunch.db`) or in a CSV file with the columns `pull` and
# `reward` (`--file monday.csv`).
#
# Python does the same. Here a simulated kitchen makes up the ratings; the study does not know its means:

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
# **Pulls in flight count.** If you ask for twenty before the first result is in, they are spread over the
# arms as if each had been told. A pull whose result never comes *expires* after a day (`--expire-after`),
# and its arm may be asked for again. If the result turns up later, it still counts.
#
# Look at `status` as often as you like: the confidence it states is valid at every moment.

# %% [shell]
# simplexplore study status lunch --store lunch.db

# %% [markdown]
# Go on until it stops by itself:

# %%
while not study.stopped:
    study.tell_many([(pull, served(pull.arm)) for pull in study.ask(50)])
print(study.answer_in_words)

# %% [markdown]
# The answer is wrong with probability at most delta, whenever the study stops. Export all data for your
# own analysis:

# %% [shell]
# simplexplore study export lunch lunch.csv --store lunch.db
# head -3 lunch.csv

# %% [markdown]
# Next: [serve a team](serve_a_team.md), so that workers on other machines can join and people can run and
# watch the study in a browser. [Run a real experiment](../live_studies.md) has every rule.
