# %% [markdown]
# # Serve a team
#
# `serve` gives studies an address: workers in any language ask and tell over HTTP, and people run and
# watch studies in a browser. It needs `pip install 'simplexplore[service]'`.
#
# A service that others can reach needs tokens. Each has a role: *read* may watch, *run* may also create
# studies, ask and tell, and *admin* may do everything. A token is shown once; only its digest is kept.

# %% [shell]
# simplexplore token create --role run --note "kitchen" --store team.db > token.txt
# simplexplore token list --store team.db | cut -c 14-

# %% [markdown]
# On the server, `simplexplore serve --store team.db --host 0.0.0.0` listens until Ctrl-C; put a proxy
# that speaks HTTPS in front of it. Here the script starts a server of its own, at a free port:

# %%
import json
import random
import subprocess
import sys
import threading
from pathlib import Path

import simplexplore as sx

server = subprocess.Popen(
    [
        sys.executable,
        "-m",
        "simplexplore",
        "serve",
        "--store",
        "team.db",
        "--port",
        "0",
        "--json",
    ],
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
)
url = json.loads(server.stdout.readline())["url"]
token = Path("token.txt").read_text().split()[0]

# %% [markdown]
# `connect` gives the same studies as `Study`, from any machine. Two workers need no coordination: each asks,
# plays and tells.

# %%
TASTE = {"pizza": 8.0, "salmon": 7.5, "lentils": 6.0}


def work(seed):
    rng = random.Random(seed)
    with sx.connect(url, token=token) as service:
        study = service.open("lunch")
        for _ in range(3):
            pulls = study.ask(10)
            study.tell_many(
                [(pull, rng.gauss(TASTE[pull.arm], 2.0)) for pull in pulls]
            )


with sx.connect(url, token=token) as service:
    service.create("lunch", sx.Problem.from_file("meal.toml"))
    workers = [threading.Thread(target=work, args=[seed]) for seed in (1, 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    status = service.open("lunch").status()
print(f"{status['rewards']} rewards; best so far: {status['policy_in_words']}")

# %% [markdown]
# Without Python, a worker needs two requests:
#
# ```sh
# curl -s $URL/v1/studies/lunch/pulls   -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '{"n": 1}'
# curl -s $URL/v1/studies/lunch/rewards -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \
#      -d '{"rewards": [{"pull": "ID", "reward": 7.5}]}'
# ```

# %%
server.terminate()
_ = server.wait(30)

# %% [markdown]
# The dashboard is at the same address. [Serve studies over HTTP](../service.md) describes every path, tokens,
# limits and monitoring.
