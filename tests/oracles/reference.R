# Reference numbers of R's packages for tests/oracles. No test needs R: they read tests/golden/r_reference.json, which this script writes.
#
#   apt-get install --no-install-recommends r-base-core r-cran-bradleyterry2 r-cran-clubsandwich r-cran-emmeans \
#     r-cran-jsonlite r-cran-lme4 r-cran-lmertest r-cran-ordinal r-cran-pbkrtest r-cran-proc r-cran-psych r-cran-survival r-cran-vcd
#   Rscript tests/oracles/reference.R
#
# The data are made up here and written beside the numbers. Only InstEval is a data set of lme4; its rows are not written.

suppressPackageStartupMessages({
  library(BradleyTerry2)
  library(clubSandwich)
  library(emmeans)
  library(lmerTest)
  library(ordinal)
  library(pROC)
  library(psych)
  library(survival)
})
options(contrasts = c("contr.treatment", "contr.poly"))
RNGkind("Mersenne-Twister", "Inversion", "Rejection")
set.seed(20261126)

columns <- function(frame) lapply(as.list(frame), function(column) if (is.factor(column)) as.character(column) else column)
likert <- function(latent, ends = c(-1.5, -0.5, 0.4, 1.3)) findInterval(latent, ends) + 1

# The sandwich of one coefficient: its jackknife (CR3), and the degrees of freedom of Bell and McCaffrey for two variances.
robust <- function(fit, cluster, coefficient = 1) {
  tested <- function(type) {
    table <- coef_test(fit, vcov = vcovCR(fit, cluster = cluster, type = type), test = "Satterthwaite")
    list(se = table$SE[coefficient], df = table$df_Satt[coefficient], p = table$p_Satt[coefficient])
  }
  list(CR2 = tested("CR2"), CR3 = tested("CR3"), se_CR1 = sqrt(vcovCR(fit, cluster = cluster, type = "CR1")[coefficient, coefficient]))
}

# Fits stop when nothing moves any more, so that all printed digits are those of the maximum.
tight <- lmerControl(optCtrl = list(xtol_abs = 1e-12, ftol_abs = 1e-12, maxeval = 1e5))
mixed <- function(formula, data, ddf) {
  table <- coef(summary(lmer(formula, data, control = tight), ddf = ddf))
  last <- nrow(table)
  list(estimate = table[last, "Estimate"], se = table[last, "Std. Error"], df = table[last, "df"], p = table[last, "Pr(>|t|)"])
}

# What a statistic becomes without each cluster, with the whole model fitted again.
refitted_variance <- function(data, cluster, statistic) {
  without <- sapply(unique(cluster), function(one) statistic(data[cluster != one, ]))
  n <- length(without)
  (n - 1) / n * sum((without - statistic(data))^2)
}

# --- Ratings of x and y by people for prompts -------------------------------------------------------------------

paired_ratings <- function(n_people, n_prompts, share, shift, sd_people, sd_prompts) {
  all <- expand.grid(prompt = seq_len(n_prompts), person = seq_len(n_people))
  activity <- pmin(1, share * exp(rnorm(n_people, 0, 0.5)))
  rows <- all[runif(nrow(all)) < activity[all$person], ]
  centre <- rnorm(n_people, 0, 0.5)[rows$person] + rnorm(n_prompts, 0, 0.6)[rows$prompt]
  slope <- shift + rnorm(n_people, 0, sd_people)[rows$person] + rnorm(n_prompts, 0, sd_prompts)[rows$prompt]
  rows$x <- likert(centre + slope / 2 + rnorm(nrow(rows)))
  rows$y <- likert(centre - slope / 2 + rnorm(nrow(rows)))
  rownames(rows) <- NULL
  rows
}

long <- function(rows) {
  system <- rep(c(0.5, -0.5), each = nrow(rows))
  data.frame(person = rep(rows$person, 2), prompt = rep(rows$prompt, 2), system = system, rating = c(rows$x, rows$y))
}

two_way <- function(fit, person, prompt) {
  one <- function(cluster) (1 - 1 / length(unique(cluster))) * vcovCR(fit, cluster = cluster, type = "CR3")[1, 1]
  both <- vcovCR(fit, cluster = interaction(person, prompt, drop = TRUE), type = "CR1")[1, 1]
  list(people = one(person), prompts = one(prompt), pairs = both)
}

crossed <- function(rows) {
  rows$d <- rows$x - rows$y
  fit <- lm(d ~ 1, rows)
  parts <- as.data.frame(VarCorr(lmer(d ~ 1 + (1 | person) + (1 | prompt), rows, control = tight)))
  list(
    data = columns(rows[c("person", "prompt", "x", "y")]), mean = unname(coef(fit)), two_way = two_way(fit, rows$person, rows$prompt),
    variances = as.list(setNames(parts$vcov, parts$grp)),
    kenward_roger = mixed(d ~ 1 + (1 | person) + (1 | prompt), rows, "Kenward-Roger"),
    random_slopes = mixed(rating ~ system + (system | person) + (system | prompt), long(rows), "Satterthwaite")
  )
}

small <- paired_ratings(14, 10, 0.6, 0.5, 0.5, 0.5)
complete <- paired_ratings(12, 15, 9, 0.3, 0.5, 0.6)
large <- paired_ratings(50, 60, 0.3, 0.3, 0.4, 0.5)

small$d <- small$x - small$y
small$equal <- 1 / ave(small$d, small$person, FUN = length)
one_way <- list(
  data = columns(small[c("person", "prompt", "x", "y")]), mean = mean(small$d),
  person = robust(lm(d ~ 1, small), small$person), prompt = robust(lm(d ~ 1, small), small$prompt),
  weighted = list(mean = weighted.mean(small$d, small$equal), variance_CR3 = vcovCR(lm(d ~ 1, small, weights = equal), cluster = small$person, type = "CR3")[1, 1])
)
line <- lm(x ~ y + prompt, small)
regression <- list(
  coefficients = unname(coef(line)), CR1S = unname(as.matrix(vcovCR(line, cluster = small$person, type = "CR1S"))),
  CR3 = unname(as.matrix(vcovCR(line, cluster = small$person, type = "CR3"))), second = robust(line, small$person, 2)
)

# Every row of a person and a prompt has one of the two systems; a third of the people judge only one of them.
apart <- long(large[large$person <= 24, ])
half <- nrow(apart) / 2
apart <- apart[c(seq(1, half, 2), half + seq(2, half, 2)), ]
apart$person <- ifelse(apart$system > 0 & apart$person %% 3 == 0, 100 + apart$person, apart$person)
apart$is_x <- as.numeric(apart$system > 0)
difference <- lm(rating ~ is_x, apart)
unpaired <- list(
  data = columns(apart[c("person", "prompt", "is_x", "rating")]), estimate = unname(coef(difference)[2]),
  person = robust(difference, apart$person, 2), prompt = robust(difference, apart$prompt, 2),
  # Without the correction of the residuals, the degrees of freedom are those of the plain variance.
  df_plain = lapply(apart[c("person", "prompt")], function(cluster) {
    coef_test(difference, vcov = vcovCR(difference, cluster = cluster, type = "CR0"), test = "Satterthwaite")$df_Satt[2]
  }),
  mixed = mixed(rating ~ is_x + (is_x | person) + (is_x | prompt), apart, "Satterthwaite")
)

# --- Ordered ratings ---------------------------------------------------------------------------------------------

ordered_ratings <- long(large[large$person <= 20, ])
ordered_ratings$is_x <- as.numeric(ordered_ratings$system > 0)
ordered_ratings$level <- factor(ordered_ratings$rating, ordered = TRUE)
odds <- function(data) unname(coef(clm(level ~ is_x, data = data))["is_x"])
one_scale <- clm(level ~ is_x, data = ordered_ratings)
conditional <- clmm(level ~ is_x + (1 | person) + (1 | prompt), data = ordered_ratings)
cumulative <- list(
  data = columns(ordered_ratings[c("person", "prompt", "is_x", "rating")]),
  clm = list(
    beta = unname(one_scale$beta), thresholds = unname(one_scale$alpha), log_likelihood = as.numeric(logLik(one_scale)),
    se_information = sqrt(vcov(one_scale)["is_x", "is_x"])
  ),
  refitted = lapply(ordered_ratings[c("person", "prompt")], function(cluster) refitted_variance(ordered_ratings, cluster, odds)),
  clmm = list(
    beta = unname(conditional$beta), se = sqrt(vcov(conditional)["is_x", "is_x"]),
    variances = sapply(VarCorr(conditional), function(part) part[1, 1])
  )
)

# --- Paired comparisons ------------------------------------------------------------------------------------------

choices <- expand.grid(round = 1:3, pair = 1:6, person = 1:12)
pairs <- t(combn(0:3, 2))
choices$first <- pairs[choices$pair, 1]
choices$second <- pairs[choices$pair, 2]
choices <- choices[runif(nrow(choices)) < rep(pmin(1, 0.6 * exp(rnorm(12, 0, 0.6))), each = 18), ]
worth <- c(0.6, 0.2, -0.1, -0.7)
gap <- worth[choices$first + 1] - worth[choices$second + 1] + rnorm(12, 0, 0.4)[choices$person] * ifelse(choices$first == 0, 1, 0)
draw <- runif(nrow(choices))
won <- exp(gap / 2) / (exp(gap / 2) + exp(-gap / 2) + 0.5)
tied <- 0.5 / (exp(gap / 2) + exp(-gap / 2) + 0.5)
choices$outcome <- ifelse(draw < won, 1, ifelse(draw < won + tied, 0.5, 0))
choices$stated <- round(pmin(1, pmax(0, plogis(gap + rnorm(nrow(choices), 0, 0.6)))), 2)

tables <- function(data) {
  wins <- ties <- matrix(0, 4, 4)
  for (row in seq_len(nrow(data))) {
    i <- data$first[row] + 1
    j <- data$second[row] + 1
    if (data$outcome[row] == 1) wins[i, j] <- wins[i, j] + 1
    if (data$outcome[row] == 0) wins[j, i] <- wins[j, i] + 1
    if (data$outcome[row] == 0.5) ties[i, j] <- ties[i, j] + 1
  }
  list(wins = wins, ties = ties)
}

# Davidson's model as a log-linear model of counts: one constant a pair, half of each strength for a tie.
davidson <- function(data) {
  counts <- tables(data)
  rows <- do.call(rbind, lapply(seq_len(nrow(pairs)), function(pair) {
    i <- pairs[pair, 1] + 1
    j <- pairs[pair, 2] + 1
    half <- numeric(4)
    half[c(i, j)] <- 0.5
    data.frame(
      pair = pair, n = c(counts$wins[i, j], counts$wins[j, i], counts$ties[i, j]), nu = c(0, 0, 1),
      rbind(as.numeric(1:4 == i), as.numeric(1:4 == j), half)
    )
  }))
  fit <- glm(n ~ factor(pair) + X2 + X3 + X4 + nu, poisson, rows, control = list(epsilon = 1e-14, maxit = 100))
  at <- c("X2", "X3", "X4", "nu")
  list(parameters = unname(coef(fit)[at]), covariance = unname(vcov(fit)[at, at]))
}

decided <- choices[choices$outcome != 0.5, ]
wins <- tables(decided)$wins
bt <- BTm(cbind(wins[pairs + 1], wins[pairs[, 2:1] + 1]), factor(pairs[, 1], 0:3), factor(pairs[, 2], 0:3), control = list(epsilon = 1e-14, maxit = 100))
comparisons <- data.frame(stated = choices$stated, sapply(1:3, function(system) (choices$first == system) - (choices$second == system)))
fractional <- glm(stated ~ 0 + X1 + X2 + X3, quasibinomial, comparisons, control = list(epsilon = 1e-14, maxit = 100))
fitted_davidson <- davidson(choices)
paired <- list(
  data = columns(choices[c("person", "first", "second", "outcome", "stated")]),
  bradley_terry = list(wins = wins, strengths = unname(coef(bt)), covariance = unname(vcov(bt))),
  davidson = c(fitted_davidson, refitted = refitted_variance(choices, choices$person, function(data) davidson(data)$parameters[3])),
  fractional = list(strengths = unname(coef(fractional)), CR3 = unname(as.matrix(vcovCR(fractional, cluster = choices$person, type = "CR3"))), df_CR3 = coef_test(fractional, vcov = vcovCR(fractional, cluster = choices$person, type = "CR3"), test = "Satterthwaite")$df_Satt)
)

# --- Best and worst ----------------------------------------------------------------------------------------------

sets <- expand.grid(set = 1:8, person = 1:10)
shown <- t(sapply(seq_len(nrow(sets)), function(row) sample(0:4, 4)))
merit <- c(0.5, 0.2, 0, -0.2, -0.5)
pick <- function(systems, sign) sample(systems, 1, prob = exp(sign * merit[systems + 1]))
sets$best <- apply(shown, 1, pick, sign = 1)
sets$worst <- sapply(seq_len(nrow(sets)), function(row) pick(setdiff(shown[row, ], sets$best[row]), -1))
# Two choices in turn: the best of the set, then the worst of the rest, with the opposite sign.
alternatives <- do.call(rbind, lapply(seq_len(nrow(sets)), function(row) {
  rest <- setdiff(shown[row, ], sets$best[row])
  one <- function(systems, sign, chosen, stratum) data.frame(stratum = stratum, chosen = as.numeric(systems == chosen), sign * sapply(1:4, function(system) as.numeric(systems == system)))
  rbind(one(shown[row, ], 1, sets$best[row], 2 * row), one(rest, -1, sets$worst[row], 2 * row + 1))
}))
in_turn <- clogit(chosen ~ X1 + X2 + X3 + X4 + strata(stratum), alternatives, method = "exact", control = coxph.control(eps = 1e-11, iter.max = 100))
best_worst <- list(
  data = c(columns(sets[c("person", "best", "worst")]), list(sets = shown)), strengths = unname(coef(in_turn)), log_likelihood = in_turn$loglik[2]
)

# --- Cells of conditions and domains -----------------------------------------------------------------------------

cells <- expand.grid(task = 1:5, person = 1:32)
cells$condition <- ifelse(cells$person <= 16, "none", "trained")
cells$domain <- ifelse(cells$person %% 2 == 0, "news", "story")
cells <- cells[runif(nrow(cells)) < rep(runif(32, 0.5, 1), each = 5), ]
cells$item <- (cells$task * 7 + cells$person * 3) %% 11
cells$correct <- as.numeric(runif(nrow(cells)) < plogis(0.2 + 0.6 * (cells$condition == "trained") * (cells$domain == "news") + rnorm(32, 0, 0.4)[cells$person]))
# A linear contrast of the four cells, whose coefficients are those of a model without a constant.
satterthwaite <- function(weights) {
  fit <- lm(correct ~ 0 + condition:domain, cells)
  table <- linear_contrast(fit, vcov = vcovCR(fit, cluster = cells$person, type = "CR2"), contrasts = matrix(weights, 1), test = "Satterthwaite")
  list(se_CR2 = table$SE, df_CR2 = table$df)
}
marginal <- function(fit) {
  grid <- emmeans(fit, ~ condition * domain, vcov. = as.matrix(vcovCR(fit, cluster = cells$person, type = "CR3")))
  effect <- as.data.frame(contrast(grid, list(effect = c(-0.5, 0.5, -0.5, 0.5))))
  by_domain <- as.data.frame(contrast(grid, list(news = c(-1, 1, 0, 0), story = c(0, 0, -1, 1))))
  interaction <- as.data.frame(contrast(grid, list(interaction = c(1, -1, -1, 1))))
  frame <- as.data.frame(grid)
  list(
    cells = list(condition = as.character(frame$condition), domain = as.character(frame$domain), mean = frame$emmean, se = frame$SE),
    effect = list(estimate = effect$estimate, se = effect$SE), by_domain = list(estimate = by_domain$estimate, se = by_domain$SE),
    interaction = list(estimate = interaction$estimate, se = interaction$SE)
  )
}
saturated <- lm(correct ~ condition * domain, cells)
conditions <- list(
  data = columns(cells[c("person", "item", "condition", "domain", "correct")]), identity = marginal(saturated),
  logit = marginal(glm(correct ~ condition * domain, binomial, cells, control = list(epsilon = 1e-14, maxit = 100))),
  effect = satterthwaite(c(-0.5, 0.5, -0.5, 0.5)), news = satterthwaite(c(-1, 1, 0, 0)), interaction = satterthwaite(c(1, -1, -1, 1)),
  htz = as.list(Wald_test(saturated, constrain_zero(4), vcov = vcovCR(saturated, cluster = cells$person, type = "CR3"), test = "HTZ")[c("Fstat", "df_denom", "p_val")])
)

# --- Area under the curve ----------------------------------------------------------------------------------------

graded <- data.frame(person = rep(1:15, each = 4), is_machine = rep(c(1, 1, 0, 0), 15))
graded$rating <- likert(0.6 * graded$is_machine + rnorm(15, 0, 0.4)[graded$person] + rnorm(60))
area <- function(data) as.numeric(auc(roc(data$is_machine, data$rating, direction = "<", quiet = TRUE)))
curve <- roc(graded$is_machine, graded$rating, direction = "<", quiet = TRUE)
areas <- list(
  data = columns(graded), auc = area(graded), delong_variance = as.numeric(var(curve, method = "delong")),
  refitted = refitted_variance(graded, graded$person, area)
)

# --- Agreement ---------------------------------------------------------------------------------------------------

coded <- data.frame(first = sample(1:4, 60, TRUE))
coded$second <- ifelse(runif(60) < 0.65, coded$first, pmin(4, pmax(1, coded$first + sample(-1:2, 60, TRUE))))
crossing <- table(coded$first, coded$second)
kappa_of <- function(weights) {
  found <- vcd::Kappa(crossing, weights = weights)
  list(plain = unname(as.list(found$Unweighted)), weighted = unname(as.list(found$Weighted)))
}
kappas <- list(linear = kappa_of("Equal-Spacing"), quadratic = kappa_of("Fleiss-Cohen"))
scored <- outer(rnorm(12), rep(1, 4)) + outer(rep(1, 12), c(0, 0.4, -0.3, 0.1)) + matrix(rnorm(48, 0, 0.7), 12)
scored <- round(scored, 2)
ranked <- t(apply(outer(rep(1, 9), c(0.8, 0.3, 0, -0.4, -0.6)) + matrix(rnorm(45), 9), 1, function(row) round(row * 2)))
friedman <- friedman.test(ranked)
by_item <- anova(lm(value ~ item, data.frame(value = as.vector(scored), item = factor(rep(1:12, 4)))))
agreement <- list(
  kappa = list(
    data = columns(coded), plain = kappas$linear$plain, linear = kappas$linear$weighted, quadratic = kappas$quadratic$weighted,
    # The weighted variance of psych 2.2.9 is another one: a jackknife agrees with vcd (see the test).
    psych_variance_quadratic = cohen.kappa(coded)$var.weighted
  ),
  scores = t(scored),
  # With equal numbers of ratings, the interval alpha is 1 - mean square within items / variance of all ratings.
  alpha_interval = 1 - by_item["Residuals", "Mean Sq"] / var(as.vector(scored)),
  friedman = list(scores = ranked, chi2 = unname(friedman$statistic), p = friedman$p.value)
)

# --- Several comparisons and power -------------------------------------------------------------------------------

pvalues <- list(six = c(0.001, 0.012, 0.012, 0.021, 0.3, 0.9), close = c(0.04, 0.041, 0.042, 0.043), mixed = c(0.2, 0.0004, 0.013, 0.0125, 0.049, 0.6, 0.03, 0.0002))
multiplicity <- lapply(pvalues, function(p) c(list(p = p), sapply(c("holm", "bonferroni", "BH", "hommel"), function(method) p.adjust(p, method), simplify = FALSE)))

fisher_power <- function(p_x, p_y, n, level = 0.05) {
  rejects <- outer(0:n, 0:n, Vectorize(function(a, b) fisher.test(matrix(c(a, n - a, b, n - b), 2))$p.value <= level * (1 + 1e-7)))
  sum(outer(dbinom(0:n, n, p_x), dbinom(0:n, n, p_y)) * rejects)
}
mcnemar_power <- function(only_x, only_y, n, level = 0.05) {
  total <- only_x + only_y
  beyond <- function(d) {
    if (d == 0) return(0)
    rejects <- sapply(0:d, function(k) binom.test(k, d)$p.value <= level)
    sum(dbinom(0:d, d, only_x / total) * rejects)
  }
  sum(dbinom(0:n, n, total) * sapply(0:n, beyond))
}
shares_grid <- data.frame(p_x = c(0.5, 0.3, 0.8), p_y = c(0.7, 0.5, 0.6), n = c(40, 60, 50))
power <- list(
  one_sample = lapply(list(c(0.3, 90), c(0.5, 20), c(0.2, 12), c(0.05, 30)), function(at) {
    list(effect = at[1], n = at[2], power = power.t.test(n = at[2], delta = at[1], sd = 1, type = "one.sample", strict = TRUE)$power)
  }),
  n_one_sample = power.t.test(delta = 0.35, sd = 1, power = 0.8, type = "one.sample", strict = TRUE)$n,
  two_sample = lapply(list(c(0.25, 130), c(0.8, 12), c(0.5, 40)), function(at) {
    list(effect = at[1], n = at[2], power = power.t.test(n = at[2], delta = at[1], sd = 1, strict = TRUE)$power)
  }),
  anova = lapply(list(c(3, 130, 0.0006), c(4, 20, 0.006)), function(at) {
    list(groups = at[1], n = at[2], between = at[3], power = power.anova.test(groups = at[1], n = at[2], between.var = at[3], within.var = 0.05)$power)
  }),
  two_shares = lapply(seq_len(nrow(shares_grid)), function(row) {
    at <- shares_grid[row, ]
    list(p_x = at$p_x, p_y = at$p_y, n = at$n, fisher = fisher_power(at$p_x, at$p_y, at$n), normal = power.prop.test(n = at$n, p1 = at$p_x, p2 = at$p_y, strict = TRUE)$power)
  }),
  paired_shares = lapply(list(c(0.2, 0.1, 80), c(0.3, 0.1, 40)), function(at) {
    list(only_x = at[1], only_y = at[2], n = at[3], power = mcnemar_power(at[1], at[2], at[3]))
  })
)

# --- Independent groups and single samples -----------------------------------------------------------------------

arms <- data.frame(group = rep(c("a", "b", "c", "d"), c(8, 12, 15, 10)))
arms$value <- round(rnorm(45, c(a = 0.5, b = 0.55, c = 0.7, d = 0.45)[arms$group], c(a = 0.1, b = 0.15, c = 0.1, d = 0.25)[arms$group]), 2)
tested <- function(found) c(statistic = unname(found$statistic), found$parameter, p = found$p.value)
honest <- TukeyHSD(aov(value ~ group, arms))$group
# TukeyHSD gives y - x for the sorted names x and y. Games and Howell: the same range, with Welch's standard errors.
pairs_of_arms <- combn(c("a", "b", "c", "d"), 2, simplify = FALSE)
games_howell <- t(sapply(pairs_of_arms, function(pair) {
  found <- t.test(value ~ group, arms[arms$group %in% pair, ])
  margin <- qtukey(0.95, 4, found$parameter) * found$stderr / sqrt(2)
  difference <- unname(found$estimate[1] - found$estimate[2])
  c(difference, difference - margin, difference + margin, ptukey(abs(found$statistic) * sqrt(2), 4, found$parameter, lower.tail = FALSE))
}))
ranges <- expand.grid(q = c(0.5, 2, 3.5, 6), k = c(2, 4, 9), df = c(3, 12.5, 200))
one <- arms$value[arms$group == "c"]
centred <- round((one - 0.6) * 20) / 20
groups <- list(
  data = columns(arms), anova = as.list(tested(oneway.test(value ~ group, arms, var.equal = TRUE))), welch = as.list(tested(oneway.test(value ~ group, arms))),
  tukey_hsd = unname(cbind(-honest[, "diff"], -honest[, "upr"], -honest[, "lwr"], honest[, "p adj"])), games_howell = games_howell,
  range = cbind(as.matrix(ranges), p = ptukey(ranges$q, ranges$k, ranges$df, lower.tail = FALSE)),
  one_sample = c(as.list(tested(t.test(one, mu = 0.6))), list(interval = as.numeric(t.test(one, mu = 0.6)$conf.int))),
  two_samples = c(as.list(tested(t.test(value ~ group, arms[arms$group %in% c("a", "c"), ]))), list(interval = as.numeric(t.test(value ~ group, arms[arms$group %in% c("a", "c"), ])$conf.int))),
  signed_ranks = list(values = centred, plain = wilcox.test(centred, exact = FALSE, correct = FALSE)$p.value, corrected = wilcox.test(centred, exact = FALSE, correct = TRUE)$p.value),
  share = list(successes = 11, n = 40, clopper_pearson = as.numeric(binom.test(11, 40)$conf.int), wilson = as.numeric(prop.test(11, 40, correct = FALSE)$conf.int), p = binom.test(11, 40)$p.value),
  two_shares = list(successes_x = 14, n_x = 40, successes_y = 27, n_y = 50, fisher = fisher.test(matrix(c(14, 26, 27, 23), 2))$p.value)
)

# --- InstEval: 73,421 ratings of lecturers by students, in lme4 --------------------------------------------------

data(InstEval, package = "lme4")
timed <- function(work) {
  taken <- system.time(found <- work())
  c(found, seconds = round(taken[["user.self"]] + taken[["sys.self"]], 1))
}
InstEval$is_service <- as.numeric(InstEval$service == "1")
constant <- lm(y ~ 1, InstEval)
# The last coefficient, and the covariances of the effects of students and of lecturers.
fitted_crossed <- function(formula) {
  fit <- lme4::lmer(formula, InstEval)
  table <- coef(summary(fit))
  last <- nrow(table)
  covariances <- lapply(VarCorr(fit), function(part) matrix(part, nrow(part)))
  list(estimate = table[last, 1], se = table[last, 2], students = covariances$s, lecturers = covariances$d, residual = sigma(fit)^2)
}
instructors <- list(
  n_rows = nrow(InstEval), mean = mean(InstEval$y), difference = unname(coef(lm(y ~ is_service, InstEval))[2]),
  CR3 = list(
    students = vcovCR(constant, cluster = InstEval$s, type = "CR3")[1, 1], lecturers = vcovCR(constant, cluster = InstEval$d, type = "CR3")[1, 1]
  ),
  intercept = timed(function() fitted_crossed(y ~ 1 + (1 | s) + (1 | d))),
  random_slopes = timed(function() fitted_crossed(y ~ is_service + (is_service | s) + (is_service | d)))
)

used <- c("BradleyTerry2", "clubSandwich", "emmeans", "lme4", "lmerTest", "ordinal", "pbkrtest", "pROC", "psych", "survival", "vcd")
versions <- paste(used, sapply(used, function(name) as.character(packageVersion(name))), collapse = ", ")
result <- list(
  source = paste0("Rscript tests/oracles/reference.R on ", format(Sys.Date()), ": ", R.version$version.string, "; ", versions, ". Data made up by the script, except InstEval (lme4), of which only numbers are stored."),
  one_way = one_way, regression = regression, crossed = list(small = crossed(small), complete = crossed(complete), large = crossed(large)),
  unpaired = unpaired, cumulative_logit = cumulative, paired_comparisons = paired, best_worst = best_worst, conditions = conditions, auc = areas,
  agreement = agreement, multiplicity = multiplicity, power = power, groups = groups, insteval = instructors
)
place <- file.path(dirname(dirname(normalizePath(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))))), "golden", "r_reference.json")
section <- function(name) paste0('"', name, '": ', jsonlite::toJSON(result[[name]], digits = I(15), auto_unbox = TRUE))
writeLines(c("{", paste0(sapply(names(result), section), c(rep(",", length(result) - 1), "")), "}"), place)
