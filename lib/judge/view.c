/* SPDX-License-Identifier: MIT */
/* Questions to a record under judgement, by paths in its JSON. */
#include "judge/validity_internal.h"

#include <math.h>
#include <string.h>

#include "base/json.h"

/*
 * The verdict on a run, from its conditions, never from its outcome: were that otherwise, the worst
 * runs of a bad variant would vanish from the comparison. docs/method.md lists every claim, its
 * threshold and where its witness comes from.
 */

double view_number(const json_t *view, const char *paths)
{
	double sum = 0;

	while (paths && *paths) {
		size_t length = strcspn(paths, "+");
		char path[160];
		const json_t *value;

		if (length >= sizeof(path))
			return NAN;
		memcpy(path, paths, length);
		path[length] = '\0';
		value = json_at(view, path);
		if (!json_is_number(value))
			return NAN;
		sum += json_number_value(value);
		paths += length + (paths[length] == '+');
	}
	return paths ? sum : NAN;
}

double view_number_or(const json_t *view, const char *path, double fallback)
{
	double value = view_number(view, path);

	return isnan(value) ? fallback : value;
}

const char *view_text(const json_t *view, const char *path)
{
	return json_string_value(json_at(view, path));
}

double view_load_number(const json_t *view, const char *path)
{
	json_t *statistics;
	const char *name;

	json_object_foreach (json_object_get(view, "load_stats"), name, statistics) {
		double value = view_number(statistics, path);

		if (!isnan(value))
			return value;
	}
	return NAN;
}
