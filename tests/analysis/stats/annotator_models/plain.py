"""Both models once more, in plain loops over answers and without numpy, as an oracle."""

from math import log


def start(items, answers, names):
    truth = {}
    for item in set(items):
        own = [answer for one, answer in zip(items, answers, strict=True) if one == item]
        truth[item] = {name: own.count(name) / len(own) for name in names}
    return truth


def plain_dawid_skene(items, annotators, answers, pseudo_count=0.0, steps=3000):
    """(shares, confusion[annotator][true][answer], truth[item][true], log-likelihood)"""
    names, rows = sorted(set(answers)), list(zip(items, annotators, answers, strict=True))
    truth = start(items, answers, names)
    for _ in range(steps):
        shares = {j: sum(one[j] for one in truth.values()) / len(truth) for j in names}
        confusion = {}
        for k in set(annotators):
            confusion[k] = {}
            for j in names:
                counts = {
                    a: pseudo_count + sum(truth[i][j] for i, who, said in rows if (who, said) == (k, a)) for a in names
                }
                total = sum(counts.values())
                confusion[k][j] = {a: counts[a] / total if total else 0.0 for a in names}
        likelihood, before = 0.0, truth
        truth = {}
        for item in before:
            weights = {}
            for j in names:
                weights[j] = shares[j]
                for i, who, said in rows:
                    if i == item:
                        weights[j] *= confusion[who][j][said]
            total = sum(weights.values())
            likelihood += log(total)
            truth[item] = {j: weight / total for j, weight in weights.items()}
        if max(abs(truth[i][j] - before[i][j]) for i in truth for j in names) < 1e-12:
            break
    return shares, confusion, truth, likelihood


def plain_competence(items, annotators, answers, pseudo_count, steps=5000):
    """(competence[annotator], truth[item][answer])"""
    names, rows = sorted(set(answers)), list(zip(items, annotators, answers, strict=True))
    truth = start(items, answers, names)
    theta = dict.fromkeys(annotators, 0.5)
    xi = {k: dict.fromkeys(names, 1 / len(names)) for k in theta}
    for _ in range(steps):
        intended = []
        for i, k, a in rows:
            right = theta[k] + (1 - theta[k]) * xi[k][a]
            intended.append(truth[i][a] * theta[k] / right if right else 0.0)
        for k in theta:
            mine = [(w, a) for w, (_, who, a) in zip(intended, rows, strict=True) if who == k]
            hits, misses = sum(w for w, _ in mine), sum(1 - w for w, _ in mine)
            theta[k] = (hits + pseudo_count) / (hits + misses + 2 * pseudo_count)
            counts = {a: pseudo_count + sum(1 - w for w, said in mine if said == a) for a in names}
            total = sum(counts.values())
            xi[k] = {a: counts[a] / total for a in names}
        before, truth = truth, {}
        for item in before:
            weights = {}
            for j in names:
                weights[j] = 1 / len(names)
                for i, k, a in rows:
                    if i == item:
                        weights[j] *= theta[k] * (a == j) + (1 - theta[k]) * xi[k][a]
            total = sum(weights.values())
            truth[item] = {j: weight / total for j, weight in weights.items()}
        if max(abs(truth[i][j] - before[i][j]) for i in truth for j in names) < 1e-12:
            break
    return theta, truth
