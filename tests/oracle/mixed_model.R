# Mixed models of made-up data, fitted by lme4: what tests/golden/mixed_model.json keeps, and what test_statistics.py asks for
# with other seeds.
#
#   Rscript tests/oracle/mixed_model.R SEED > cases.json
#
# Columns are given to lmer as one matrix, so that lme4 drops columns of it in its own way. Its optimiser is asked for more
# digits than it has by default; theta is polished by a search about what it found, because flat criteria end it early.
suppressPackageStartupMessages({library(lme4); library(jsonlite)})
arguments <- commandArgs(trailingOnly = TRUE)
seed <- if (length(arguments) > 0) as.integer(arguments[[1]]) else 20
set.seed(seed)

short <- function(v) as.numeric(formatC(v, digits = 7, format = "g"))
factorial_plan <- function(seeds, lrs = 2) expand.grid(arch = 0:1, lr = 0:(lrs - 1), seed = seq_len(seeds))
uneven <- function(sizes) rep(seq_along(sizes), sizes)
# Residuals whose means are the same in all groups: less variance between groups than within would give.
level <- function(e, g) e - ave(e, g)

response <- function(x, beta, g, sd_b, sd_e) {
    b <- rnorm(max(g), sd = sd_b)
    e <- rnorm(length(g), sd = sd_e)
    as.vector(x %*% beta) + b[g] + e
}

of <- function(id, x, g, y) list(id = id, x = apply(x, 2, short), group = g, y = short(y))

plain <- function(id, seeds, lrs, sd_b, sd_e) {
    p <- factorial_plan(seeds, lrs)
    x <- cbind(one = 1, arch = p$arch, lr = p$lr, x = rnorm(nrow(p)))
    of(id, x, p$seed, response(x, c(25, -0.8, 0.3, 0.4), p$seed, sd_b, sd_e))
}
unbalanced <- function(id, sizes, sd_b, sd_e, k = 3) {
    g <- uneven(sizes)
    x <- cbind(1, matrix(rnorm(length(g) * k), ncol = k))
    colnames(x) <- c("one", paste0("x", seq_len(k)))
    of(id, x, g, response(x, c(3, runif(k, -1, 1)), g, sd_b, sd_e))
}
boundary <- function(id, seeds, lrs, k) {
    p <- factorial_plan(seeds, lrs)
    x <- cbind(1, p$arch, matrix(rnorm(nrow(p) * k), nrow = nrow(p)))
    colnames(x) <- c("one", "arch", sprintf("x%d", seq_len(k)))
    y <- as.vector(x %*% c(0.27, -0.01, rep(0.002, k))) + level(rnorm(nrow(p), sd = 0.004), p$seed)
    of(id, x, p$seed, y)
}
# Columns made from those of the design; sd_b = 0 leaves both kinds of singularity in one fit.
deficient <- function(id, make, sd_b = 1, seeds = 5) {
    p <- factorial_plan(seeds)
    x <- cbind(one = 1, arch = p$arch, lr = p$lr, u = rnorm(nrow(p)))
    e <- rnorm(nrow(p), sd = 0.5)
    y <- as.vector(x %*% c(25, 1, -1, 0.5)) + rnorm(seeds, sd = sd_b)[p$seed] + (if (sd_b > 0) e else level(e, p$seed))
    of(id, make(x), p$seed, y)
}
shaped <- function(id, x, g, beta, sd_b, sd_e) of(id, x, g, response(x, beta, g, sd_b, sd_e))

make_cases <- function() {
    cases <- list()
    add <- function(case) cases[[length(cases) + 1]] <<- case
    for (i in 1:4) add(plain(paste0("grid_", i), 3, 2, c(1, 2, 0.7, 4)[i], c(1, 0.5, 0.7, 0.3)[i]))
    for (i in 1:3) add(plain(paste0("grid5_", i), 5, 3, c(1, 0.5, 2)[i], 0.6))
    add(unbalanced("unbalanced_small", c(2, 3, 1, 5, 4), 1.5, 0.5))
    add(unbalanced("unbalanced_single_rows", c(1, 1, 7, 2, 1, 9), 1, 0.4))
    add(unbalanced("unbalanced_wide", c(30, 2, 2, 11, 5, 3, 19), 0.8, 1))
    add(unbalanced("many_groups", sample(2:9, 40, replace = TRUE), 1, 1, 5))
    add(unbalanced("one_column_many_rows", rep(25, 8), 0.5, 1, 1))
    add(unbalanced("two_groups", c(9, 11), 3, 0.5, 2))
    add(unbalanced("theta_100", rep(6, 6), 50, 0.5, 2))
    g <- rep(1:6, each = 4)
    add(shaped("mean_only", cbind(one = rep(1, 24)), g, 7, 2, 1))
    arm <- rep(0:1, 12)
    add(shaped("no_intercept", cbind(dense = 1 - arm, moe = arm), g, c(1, 2), 1, 0.5))
    add(shaped("between_column", cbind(one = 1, of_group = c(0.3, -1, 2, 0.5, 1.1, -0.7)[g], x = rnorm(24)), g,
               c(1, 1, 1), 1, 0.5))
    add(shaped("scales", cbind(one = 1, large = rnorm(24, sd = 1e7), small = rnorm(24, sd = 1e-7)), g,
               c(1, 1e-7, 1e7), 1, 0.5))
    add(shaped("offset", cbind(one = 1, step = 5000 + rnorm(24)), g, c(1, 0.1), 1, 0.5))
    u <- rnorm(24)
    add(shaped("nearly_collinear", cbind(one = 1, u = u, v = u + rnorm(24, sd = 1e-3)), g, c(1, 1, 1), 1, 0.5))
    add(shaped("tiny_response", cbind(one = 1, arm = arm), g, c(1e-6, 2e-7), 4e-7, 2e-7))
    for (i in 1:4) add(boundary(paste0("boundary_", i), c(3, 5, 3, 8)[i], c(2, 3, 3, 2)[i], c(1, 2, 0, 4)[i]))
    add(deficient("constant", function(x) cbind(x, pinned = 0.125)))
    add(deficient("zeros", function(x) cbind(x, kills = 0)))
    add(deficient("four_pinned", function(x) cbind(x[, 1:3], router_load = 0.125, router_kills = 0, router_occupancy = 1,
                                                   router_anneal = 0.01), seeds = 3))
    add(deficient("duplicate", function(x) cbind(x, again = x[, "u"])))
    add(deficient("multiple", function(x) cbind(x, scaled = -3 * x[, "lr"])))
    add(deficient("sum", function(x) cbind(x, both = x[, "arch"] + 2 * x[, "lr"])))
    add(deficient("dummies", function(x) cbind(x[, 1:3], dense = 1 - x[, "arch"], u = x[, "u"])))
    add(deficient("first_twice", function(x) cbind(x[, "u"], x)[, c(2, 1, 5, 3, 4)]))
    add(deficient("pinned_at_boundary", function(x) cbind(x, pinned = 2), sd_b = 0))
    add(deficient("duplicate_at_boundary", function(x) cbind(x, again = x[, "arch"], zero = 0), sd_b = 0))
    lapply(cases, function(case) { colnames(case$x)[colnames(case$x) == ""] <- "copy"; case })
}

fit <- function(case) {
    data <- list(y = case$y, X = case$x, g = factor(case$group))
    quiet <- function(e) suppressMessages(suppressWarnings(e))
    control <- lmerControl(optCtrl = list(xtol_abs = 1e-12, xtol_rel = 1e-12, ftol_abs = 0, ftol_rel = 1e-15, maxeval = 10000))
    parts <- quiet(lFormula(y ~ 0 + X + (1 | g), data = data, REML = TRUE, control = control))
    criterion <- do.call(mkLmerDevfun, parts)
    found <- quiet(optimizeLmer(criterion, optimizer = "nloptwrap", control = control$optCtrl))
    theta <- found$par
    near <- optimize(criterion, c(theta * 0.999, theta * 1.001 + 1e-12), tol = 1e-13)
    if (near$objective < criterion(theta)) theta <- near$minimum
    if (criterion(0) <= criterion(theta)) theta <- 0
    best <- list(par = theta, fval = criterion(theta), conv = 0, message = "") # the call leaves that theta's estimates
    best <- mkMerMod(environment(criterion), best, parts$reTrms, fr = parts$fr)
    names <- colnames(case$x)
    kept <- sub("^X", "", names(fixef(best)))
    if (ncol(case$x) == 1) kept <- names
    vc <- as.data.frame(VarCorr(best))
    var_b <- vc$vcov[1]
    var_e <- vc$vcov[2]
    fixed <- var(as.vector(best@pp$X %*% fixef(best)))
    expand <- function(v) { out <- rep(NA_real_, length(names)); out[match(kept, names)] <- v; out }
    list(id = case$id, names = I(names), x = unname(case$x), group = case$group, y = case$y, kept = I(names %in% kept),
         beta = I(unname(expand(fixef(best)))), se = I(unname(expand(sqrt(diag(as.matrix(vcov(best))))))),
         var_b = var_b, var_e = var_e, theta = theta, reml_loglik = as.numeric(logLik(best)),
         singular = isSingular(best, tol = 1e-4) || length(kept) < length(names),
         r2_marginal = fixed / (fixed + var_b + var_e), r2_conditional = (fixed + var_b) / (fixed + var_b + var_e))
}

result <- list(comment = paste0("REML fits by lme4 ", packageVersion("lme4"), ", tests/oracle/mixed_model.R, seed ", seed),
               cases = lapply(make_cases(), fit))
cat(toJSON(result, digits = 15, auto_unbox = TRUE, na = "null", always_decimal = FALSE), "\n")
