/* SPDX-License-Identifier: MIT */
#include "compare/comparison.h"

#include <float.h>
#include <math.h>

#include "base/json.h"

static json_t *pair_of(double low, double high)
{
	return json_pack("[o, o]", json_number_or_null(low), json_number_or_null(high));
}

/* A rank test's p is never 0: below the least normal double this bound stands for it, and log10_p
 * says how small it is. */
static json_t *probability(double log_p)
{
	return json_real(fmax(exp(log_p), DBL_MIN));
}

static json_t *left_out_to_json(const struct comparison_arm *arm)
{
	return json_pack("{s:I, s:I, s:I, s:I}", "invalid", (json_int_t)arm->invalid, "failed",
			 (json_int_t)arm->failed, "interrupted", (json_int_t)arm->interrupted,
			 "without_value", (json_int_t)arm->without_value);
}

static json_t *arm_to_json(const struct comparison_arm *arm)
{
	json_t *json = json_object();
	int error = 0;

	error |= json_put(json, "name", json_string_or_null(arm->name));
	error |= json_put(json, "n", json_integer((json_int_t)arm->count));
	error |= json_put(json, "min", json_number_or_null(arm->minimum));
	error |= json_put(json, "max", json_number_or_null(arm->maximum));
	error |= json_put(json, "median", json_number_or_null(arm->median));
	error |= json_put(json, "mean", json_number_or_null(arm->mean));
	error |= json_put(json, "stddev", json_number_or_null(arm->stddev));
	error |= json_put(json, "median_ci", pair_of(arm->median_ci.low, arm->median_ci.high));
	error |= json_put(json, "left_out", left_out_to_json(arm));
	error |= json_put(json, "suspect", json_integer((json_int_t)arm->suspect));
	if (error) {
		json_decref(json);
		return NULL;
	}
	return json;
}

static int put_test(json_t *json, const struct comparison_pair *pair)
{
	int error = 0;

	error |= json_put(json, "test",
			  json_sprintf("Mann-Whitney, %s", rank_method_name(pair->test.method)));
	error |= json_put(json, "u", json_number_or_null(pair->test.u));
	error |= json_put(json, "p", probability(pair->test.log_p));
	error |= json_put(json, "p_holm", probability(pair->log_p_holm));
	error |= json_put(json, "log10_p", json_real(pair->test.log_p / M_LN10));
	error |= json_put(json, "least_p", probability(pair->test.log_least_p));
	return error;
}

static json_t *pair_to_json(const struct comparison *comparison, const struct comparison_pair *pair)
{
	const struct interval *ratio = &pair->shift.ratio, *shift = &pair->shift.shift;
	json_t *json = json_object();
	int error = 0;

	error |= json_put(json, "a", json_string_or_null(comparison->arms[pair->a].name));
	error |= json_put(json, "b", json_string_or_null(comparison->arms[pair->b].name));
	error |= put_test(json, pair);
	error |= json_put(json, "ratio", json_number_or_null(ratio->estimate));
	error |= json_put(json, "ratio_ci", pair_of(ratio->low, ratio->high));
	error |= json_put(json, "shift", json_number_or_null(shift->estimate));
	error |= json_put(json, "shift_ci", pair_of(shift->low, shift->high));
	error |= json_put(json, "superiority", json_number_or_null(pair->superiority.estimate));
	error |= json_put(json, "superiority_ci",
			  pair_of(pair->superiority.low, pair->superiority.high));
	error |= json_put(json, "verdict", json_string(comparison_verdict_name(pair->verdict)));
	error |= json_put(json, "why", pair->why[0] ? json_string_or_null(pair->why) : json_null());
	if (error) {
		json_decref(json);
		return NULL;
	}
	return json;
}

json_t *comparison_to_json(const struct comparison *comparison)
{
	json_t *json = json_object(), *arms = json_array(), *pairs = json_array();
	int error = 0;

	for (size_t i = 0; i < comparison->count; i++)
		error |= json_array_append_new(arms, arm_to_json(&comparison->arms[i]));
	for (size_t i = 0; i < comparison->pair_count; i++)
		error |= json_array_append_new(pairs,
					       pair_to_json(comparison, &comparison->pairs[i]));
	error |= json_put(json, "schema", json_string(COMPARISON_SCHEMA));
	error |= json_put(json, "metric", json_string_or_null(comparison->metric));
	error |= json_put(json, "unit",
			  json_string_or_null(*comparison->unit ? comparison->unit : NULL));
	error |= json_put(json, "alpha", json_real(comparison->options.alpha));
	error |= json_put(json, "min_effect", json_real(comparison->options.min_effect));
	error |= json_put(json, "confidence", json_real(comparison->options.confidence));
	error |= json_put(json, "family", json_integer((json_int_t)comparison->family));
	error |= json_put(json, "arms", arms);
	error |= json_put(json, "pairs", pairs);
	if (error) {
		json_decref(json);
		return NULL;
	}
	return json;
}
