# %% [markdown]
# # The idea in pictures
#
# Three dishes, and one question: in which proportions should a kitchen serve them, so that people like the
# menu best? This page draws what there is to choose from, what makes the best menu hard to find, where
# tastings go, and when they have been enough. Every picture is drawn when the site is built, from what
# `sx.lower_bound` and `sx.Explorer` say; the theory is in
# [Characteristic time](../theory/characteristic_time.md).

# %% [hidden]
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.tri import Triangulation

import simplexplore as sx

INK, GREY, PALE, BLUE, ORANGE = (
    "#222222",
    "#8a8a8a",
    "#e4ecf5",
    "#0072B2",
    "#D55E00",
)
EDGES = (BLUE, ORANGE)
DISHES = ("pizza", "salmon", "lentils")
PEOPLE = {"meal": "no limits", "meal-a": "person A", "meal-b": "person B"}
LIMITS = {
    "meal": "any proportions",
    "meal-a": "at most 235 kcal per 100 g",
    "meal-b": "at least 4 g of fibre per 100 g",
}

# Corners of a triangle with its centre at 0: means that differ by a constant are one point.
CORNERS = np.array(
    [[-np.sqrt(3) / 2, -0.5], [np.sqrt(3) / 2, -0.5], [0.0, 1.0]]
)
SQUARE = 2.2 * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])

problems = {name: sx.catalog.instance(name).problem for name in PEOPLE}
bounds = {name: sx.lower_bound(problem) for name, problem in problems.items()}
mu = bounds["meal"].means


def cut(polygon, row, most):
    """The part of a convex polygon where row . x <= most."""
    kept, excess = [], polygon @ row - most
    for (x, here), (y, there) in zip(
        zip(polygon, excess, strict=True),
        zip(np.roll(polygon, -1, 0), np.roll(excess, -1), strict=False),
        strict=True,
    ):
        if here <= 0:
            kept.append(x)
        if here * there < 0:
            kept.append(x + (y - x) * here / (here - there))
    return np.array(kept)


def feasible(problem):
    """Corners of the feasible policies."""
    corners = np.eye(3)
    for row, low, high in zip(
        problem.matrix, problem.lower, problem.upper, strict=True
    ):
        corners = (
            cut(corners, row, high)
            if np.isfinite(high)
            else cut(corners, -row, -low)
        )
    return corners


def panels(count, height=3.5):
    figure, axes = plt.subplots(
        1, count, figsize=(9.6, height), layout="constrained"
    )
    for one in axes:
        one.set_aspect("equal")
        one.axis("off")
    return figure, axes


def triangle(axes):
    axes.fill(*CORNERS.T, facecolor="none", edgecolor=GREY, linewidth=1)
    for corner, dish, side in zip(
        CORNERS, DISHES, ("left", "right", "center"), strict=True
    ):
        high = corner[1] > 0
        axes.annotate(
            dish,
            corner,
            xytext=(0, 5 if high else -5),
            textcoords="offset points",
            ha=side,
            va="bottom" if high else "top",
            color=GREY,
        )
    axes.set_xlim(-1.05, 1.05)
    axes.set_ylim(-0.85, 1.3)


def save(figure, name):
    figure.get_layout_engine().set(h_pad=0.1)
    figure.savefig(f"{name}.png", dpi=160)
    plt.close(figure)


# %% [markdown]
# ## What there is to choose from
#
# A **policy** is a mix: so much pizza, so much salmon, so much lentils. All mixes form a triangle, whose
# corners are one dish alone. Limits cut pieces off it. The taste of a mix grows in the direction of the
# arrow, so the best mix (the dot) is a *corner* of what is left. From it **edges** lead to its
# neighbours, the rivals: if neither neighbour is better, nothing is.
#
# Pizza tastes best (means 1, 0.3 and 0). Without limits, pizza alone is the answer, and its rivals are the
# other dishes: that is the well-known problem of the best arm. Person A counts calories, person B wants
# fibre. Both must mix pizza with lentils, A in the proportion of 3 to 1, B of 4 to 1.

# %% [hidden]
figure, axes = panels(3)
for one, (name, person) in zip(axes, PEOPLE.items(), strict=True):
    bound = bounds[name]
    triangle(one)
    one.fill(
        *(feasible(problems[name]) @ CORNERS).T,
        facecolor=PALE,
        edgecolor="none",
    )
    best = bound.policy @ CORNERS
    for edge, colour in zip(bound.edges, EDGES, strict=True):
        one.plot(
            *np.array([best, edge.neighbour @ CORNERS]).T,
            color=colour,
            linewidth=3,
        )
    start = np.array([0.1, 0.52])
    one.annotate(
        "", start + 0.4 * mu @ CORNERS, start, arrowprops={"arrowstyle": "-|>"}
    )
    one.text(-0.02, 0.3, "taste", ha="left")
    one.plot(*best, "o", color=INK, markersize=9, clip_on=False)
    one.set_title(f"{person}\n{LIMITS[name]}", fontsize="medium")
save(figure, "policies-that-each-person-may-choose")

# %% [markdown]
# ## What makes it hard
#
# Nobody knows the means. The tastings so far leave many of them possible, and a mix may be recommended
# once it is the best one under *all* of these. So look at means now, not at mixes: each point of the next
# pictures is a triple of means (up to a constant, which changes no comparison). In the shaded
# **normal cone** the dot of the picture above is the best mix. Each of its sides belongs to an edge: across
# it that neighbour is better. What is hard is to be sure on which side the truth μ lies.
#
# Person A's limit turns a side of the cone towards μ, and so the same means are ten times as hard; person
# B's turns it away. The circle has its centre at μ and ends where the first side does. The number is the
# [lower bound](../theory/characteristic_time.md#no-method-needs-fewer-samples), which no method that errs
# with probability at most 10%, whatever the means, can beat on average.

# %% [hidden]
point = mu @ CORNERS * 2 / 3


def cone(axes, bound):
    shape, sides = SQUARE, []
    for edge in bound.edges:
        outward = edge.direction @ CORNERS
        shape = cut(shape, outward, 0.0)
        sides.append(outward / np.linalg.norm(outward))
    axes.fill(*shape.T, facecolor=PALE, edgecolor="none")
    for number, (outward, colour) in enumerate(zip(sides, EDGES, strict=True)):
        along = np.array([-outward[1], outward[0]])
        other = sides[1 - number]
        along *= -np.sign(along @ other)  # where the other side holds too
        axes.plot(
            *np.array([0 * along, 3 * along]).T, color=colour, linewidth=2.5
        )
    axes.plot(*point, "o", color=INK, markersize=6)
    axes.annotate(
        "μ",
        point,
        xytext=(-4, -6),
        textcoords="offset points",
        ha="right",
        va="top",
    )
    axes.set_xlim(-1.3, 0.75)
    axes.set_ylim(-1.15, 0.55)
    return sides


figure, axes = panels(3, height=3.1)
turn = np.linspace(0, 2 * np.pi, 200)
for one, (name, person) in zip(axes, PEOPLE.items(), strict=True):
    bound = bounds[name]
    sides = cone(one, bound)
    near = min(sides, key=lambda side: -side @ point)
    radius = -near @ point
    one.plot(
        *(point[:, None] + radius * np.array([np.cos(turn), np.sin(turn)])),
        color=GREY,
    )
    one.plot(
        *np.array([point, point + radius * near]).T, color=GREY, linestyle=":"
    )
    one.set_title(
        f"{person}\nat least {bound.samples:,.0f} tastings", fontsize="medium"
    )
save(figure, "normal-cones-of-the-best-mixes")

# %% [markdown]
# ## The closest alternative
#
# How many tastings it takes depends on how they are shared. With shares $w$ a triple of means $\lambda$ is
# told from the truth at the rate $\sum_a w_a\, d(\mu_a, \lambda_a)$ per tasting. Means of one rate lie on an
# ellipse around μ. The largest ellipse that stays in the cone touches a side at the **closest
# alternative**: the means, with another best mix, that are the last to be ruled out.
#
# On the left all dishes are tasted alike: the ellipse is a circle and touches one side only, and much of
# what is learned about the other side is not needed. On the right shares are optimal, and person B's
# ellipse touches both sides. The best shares make the hardest alternatives equally hard. $T$, the
# **characteristic time**, is one over the rate at the closest alternative: the lower bound is T times
# kl(δ, 1 − δ), 1.76 for δ = 0.1.

# %% [hidden]
bound = bounds["meal-b"]
directions = np.array([edge.direction for edge in bound.edges])
gaps = np.array([edge.gap for edge in bound.edges])


def rates(shares):
    """What a tasting tells against each edge, on average: D_e(w) of Gaussian rewards, sigma 1."""
    return (
        gaps**2 / 2 / (directions**2 / np.asarray(shares)[..., None, :]).sum(-1)
    )


figure, axes = panels(2, height=3.9)
optimal = bound.scenarios["end-of-time"].allocation
for one, shares, words in (
    (axes[0], np.full(3, 1 / 3), "equal shares"),
    (axes[1], optimal, "optimal shares"),
):
    cone(one, bound)
    rate = rates(shares).min()
    # Of means that differ by a constant, those that are told from the truth most slowly.
    form = CORNERS.T @ (np.diag(shares) - np.outer(shares, shares)) @ CORNERS
    values, vectors = np.linalg.eigh(form)
    ring = vectors @ (
        np.sqrt(2 * rate / values)[:, None] * [np.cos(turn), np.sin(turn)]
    )
    one.plot(*(point[:, None] + ring), color=INK, linewidth=1.5)
    for direction, gap, found, colour in zip(
        directions, gaps, rates(shares), EDGES, strict=True
    ):
        if found < rate * 1.0001:
            step = gap * direction / shares / (direction**2 / shares).sum()
            one.plot(
                *((mu + step) @ CORNERS * 2 / 3),
                "D",
                color=colour,
                markersize=8,
            )
    said = ", ".join(
        f"{dish} {share:.0%}"
        for dish, share in zip(DISHES, shares, strict=True)
    )
    one.set_title(f"{words}: T = {1 / rate:.1f}\n{said}", fontsize="medium")
save(figure, "closest-alternatives-with-equal-and-optimal-shares")

# %% [markdown]
# ## Where tastings go, and why
#
# All ways of sharing tastings form a triangle too. The lines below join shares that are equally good for
# person B: outside the line "×2" every method with these shares takes twice the samples that are needed.
# On the blue side the comparison with the blue neighbour is the slower one, on the orange side that with
# the orange one, and the optimum is where they meet. Person B may not only wish for the fibre in the
# answer but want it in the tastings too (*anytime*): then shares must lie in the grey part, and the best of
# those are at its border.

# %% [hidden]
steps = 120
grid = (
    np.array(
        [
            (i, j, steps - i - j)
            for i in range(1, steps)
            for j in range(1, steps - i)
        ]
    )
    / steps
)
each = 1 / rates(grid)
least = bound.scenarios["end-of-time"].characteristic_time
x, y = (grid @ CORNERS).T
figure, axes = plt.subplots(figsize=(8.0, 5.4), layout="constrained")
axes.set_aspect("equal")
axes.axis("off")
triangle(axes)
axes.fill(
    *(feasible(problems["meal-b"]) @ CORNERS).T,
    facecolor="#f0f0f0",
    edgecolor="none",
)
slower = each[:, 0] >= each[:, 1]
for worse, colour in ((slower, BLUE), (~slower, ORANGE)):
    part = Triangulation(x, y)
    part.set_mask(~worse[part.triangles].any(axis=1))
    lines = axes.tricontour(
        part,
        each.max(axis=1) / least,
        levels=[1.1, 1.5, 2, 3, 5],
        colors=colour,
        linewidths=1,
    )
axes.clabel(lines, fmt="×%g", fontsize="small", inline_spacing=2)
for shares, words, mark, beside in (
    (
        bound.scenarios["anytime"].allocation,
        "optimum, anytime",
        "s",
        (0.5, 0.72),
    ),
    (np.full(3, 1 / 3), "equal shares", "X", (0.62, 0.45)),
    (optimal, "optimum", "o", (0.78, 0.18)),
):
    place = shares @ CORNERS
    axes.plot(*place, mark, color=INK, markersize=8)
    axes.annotate(
        f"{words}: {1 / rates(shares).min():.1f}",
        place,
        beside,
        va="center",
        arrowprops={"arrowstyle": "-", "color": "#b0b0b0", "shrinkB": 6},
    )
axes.set_xlim(-1.0, 1.6)
save(figure, "how-many-tastings-each-way-of-sharing-them-takes")

# %% [markdown]
# The program knows none of this when it starts: it has to guess the means, and samples as if its guess
# were right. `ctns`, the paper's Track-and-Stop, does so after every tasting; `top-two`, ours, gives the next
# tasting to the comparison that has the least evidence.
#
# ## Evidence grows until it is enough
#
# One run, for person A. Each edge of the mix that looks best so far has an *evidence*: how much more likely
# the tastings are under the means that were seen than under any means for which that neighbour is
# better (its logarithm). Tasting stops when the *least* evidence reaches the threshold, which grows with
# log(1/δ). Before that the answer may change, and then the evidence begins again, from below.

# %% [hidden]
problem = problems["meal-a"]
explorer = sx.Explorer(problem, sampler="ctns", threshold="gk16", seed=8)
rewards = np.random.default_rng(8)
history, shares = [], []
while (arm := explorer.ask()) is not None:
    explorer.tell(arm, float(rewards.normal(mu[problem.arms.index(arm)])))
    counts = explorer.counts
    shares.append(counts / counts.sum())
    if explorer.policy is None:
        history.append([np.nan, np.nan, np.nan])
        continue
    seen = sx.lower_bound(problem, explorer.means)
    found = [
        edge.gap**2 / 2 / (edge.direction**2 / counts).sum()
        for edge in seen.edges
    ]
    history.append([*found, seen.policy[2]])

t = np.arange(1, len(history) + 1)
evidence, lentils = np.array(history)[:, :2], np.array(history)[:, 2]
threshold = np.log((1 + np.log(t)) / problem.delta)
figure, (above, below) = plt.subplots(
    2,
    1,
    figsize=(9.6, 5.6),
    layout="constrained",
    sharex=True,
    height_ratios=[3, 2],
)
right = np.isclose(lentils, bounds["meal-a"].policy[2])
above.plot(t, evidence.min(axis=1), color=GREY, linewidth=1.2)
above.plot(
    t, np.where(right, evidence.min(axis=1), np.nan), color=INK, linewidth=2
)
above.plot(t, threshold, color=ORANGE, linestyle="--")
above.plot(t[-1], evidence[-1].min(), "o", color=INK)
above.annotate(
    f"stops after {t[-1]} tastings",
    (t[-1], evidence[-1].min()),
    xytext=(-8, 8),
    textcoords="offset points",
    ha="right",
)
above.text(
    t[-1] / 2, threshold[-1] + 0.3, "threshold", color=ORANGE, ha="center"
)
above.set_ylabel("least evidence")
above.set_xlim(0, 1.01 * t[-1])
above.set_ylim(0, 1.25 * threshold[-1])
optimal = bounds["meal-a"].scenarios["end-of-time"].allocation
for dish, share, best, colour in zip(
    DISHES, np.array(shares).T, optimal, (INK, BLUE, ORANGE), strict=True
):
    below.plot(t, share, color=colour, linewidth=1.5, label=dish)
    below.axhline(best, color=colour, linestyle=":", linewidth=1)
below.legend(frameon=False, ncols=3, loc="upper right")
below.set_ylabel("share of the tastings")
below.set_xlabel("tastings")
below.set_ylim(0, 0.8)
for one in (above, below):
    one.spines[["top", "right"]].set_visible(False)
save(figure, "evidence-and-shares-of-one-run")

# %% [markdown]
# Above: in grey, while another mix looked best than the right one. Below: the shares of the tastings,
# and dotted the optimal ones. Salmon is not in the answer, and is tasted most of all: whether it belongs
# there is what is hard to know.
#
# Next: [plan an experiment](plan_an_experiment.md) of your own.
