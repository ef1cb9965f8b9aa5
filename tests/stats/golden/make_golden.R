# SPDX-License-Identifier: MIT
# Reference values from R. In this directory: Rscript make_golden.R > golden_r.h
# (series: ../data/tip-mean.txt, ../data/mapping-mean.txt; tested with R 4.2.2)
tip <- scan("../data/tip-mean.txt", quiet = TRUE)
mapping <- scan("../data/mapping-mean.txt", quiet = TRUE)
x15 <- c(2.13, 3.4, 1.07, 8.8, 5.55, 4.01, 9.9, 7.21, 6.66, 3.07, 2.91, 5.02, 4.44, 12.3, 1.75)
y12 <- c(1.1, 2.2, 0.9, 3.3, 4.9, 1.31, 2.05, 6.1, 1.86, 0.55, 3.95, 2.77)
number <- function(v) ifelse(is.infinite(v), ifelse(v > 0, "INFINITY", "-INFINITY"), sprintf("%.17g", v))
array <- function(name, v) cat(sprintf("static const double %s[] = { %s };\n", name, paste(number(v), collapse = ", ")))
value <- function(name, v) cat(sprintf("#define GOLDEN_%s %s\n", name, number(v)))
cat("/* SPDX-License-Identifier: MIT */\n/* Made by make_golden.R. */\n#include <math.h>\n\n")
array("x15", x15)
array("y12", y12)

# Rank test: exact without ties, normal approximation with ties and continuity.
w <- wilcox.test(x15, y12, exact = TRUE)
value("RANK_U", w$statistic); value("RANK_P", w$p.value)
value("RANK_GREATER", wilcox.test(x15, y12, exact = TRUE, alternative = "greater")$p.value)
value("RANK_LESS", wilcox.test(x15, y12, exact = TRUE, alternative = "less")$p.value)
# Tied values moved apart, in a known way, so that R is exact: place of each value in the order.
untied <- function(v, step) v + step * 1e-7 * seq_along(v)
a <- untied(mapping, 1); b <- untied(tip, 1.37)
value("SEED_U", wilcox.test(a, b, exact = TRUE)$statistic)
value("SEED_LOG_P", log(2) + pwilcox(120 * 120 - wilcox.test(a, b)$statistic, 120, 120, log.p = TRUE))
w <- wilcox.test(mapping, tip, exact = FALSE)
value("SEED_NORMAL_LOG_P", log(w$p.value))
value("SEED_NORMAL_GREATER", log(wilcox.test(mapping, tip, exact = FALSE, alternative = "greater")$p.value))
ties1 <- c(1, 2, 2, 3, 3, 3, 4, 7, 8, 8); ties2 <- c(1, 1, 2, 3, 4, 4, 5)
array("ties1", ties1); array("ties2", ties2)
value("TIES_NORMAL_P", wilcox.test(ties1, ties2, exact = FALSE)$p.value)

# Shift and ratio. tol.root: R's default of 1e-4 is the only reason to differ from it.
interval <- function(name, p, q, level) {
  w <- suppressWarnings(wilcox.test(p, q, conf.int = TRUE, conf.level = level, tol.root = 1e-14))
  value(paste0(name, "_LOW"), w$conf.int[1]); value(paste0(name, "_HIGH"), w$conf.int[2])
  value(paste0(name, "_MEDIAN"), median(outer(p, q, "-")))
  w
}
w <- interval("SHIFT_SMALL", x15, y12, 0.95)
w <- interval("RATIO_SMALL", log(x15), log(y12), 0.99)
w <- interval("RATIO_SEED", log(mapping), log(tip), 0.99)
w <- interval("SHIFT_SEED", mapping, tip, 0.95)
w <- wilcox.test(log(mapping), log(tip), conf.int = TRUE, conf.level = 0.99)
value("RATIO_SEED_DEFAULT_LOW", w$conf.int[1]); value("RATIO_SEED_DEFAULT_HIGH", w$conf.int[2])

# Order statistics: places by the binomial.
places <- function(name, n, p, level) {
  r <- max(which(pbinom(0:(n - 1), n, p) <= (1 - level) / 2)); s <- min(which(pbinom(0:(n - 1), n, p, lower.tail = FALSE) <= (1 - level) / 2))
  value(paste0(name, "_LOW"), r); value(paste0(name, "_HIGH"), s)
}
places("MEDIAN_120", 120, 0.5, 0.95); places("MEDIAN_9", 9, 0.5, 0.95); places("P90_200", 200, 0.9, 0.99); places("P99_9_5000", 5000, 0.999, 0.95)

p <- c(0.001, 0.04, 0.03, 0.2, 0.0004)
array("holm_in", p); array("holm_out", p.adjust(p, "holm"))

# Distributions.
value("NORMAL_UPPER_40", pnorm(40, lower.tail = FALSE, log.p = TRUE))
value("NORMAL_UPPER_3", pnorm(3, lower.tail = FALSE, log.p = TRUE))
value("NORMAL_QUANTILE", qnorm(1e-9, lower.tail = FALSE))
value("T_QUANTILE", qt(0.005, 7.3, lower.tail = FALSE)); value("T_UPPER", pt(2.5, 3.7, lower.tail = FALSE))
value("BETA", pbeta(0.3, 2.5, 7))
value("BINOMIAL_AT_MOST", pbinom(40, 120, 0.5)); value("BINOMIAL_LARGE", pbinom(4998000, 1e7, 0.5))
value("SD_SEED", sd(tip)); value("LAG1_SEED", acf(tip, plot = FALSE)$acf[2])
