/* SPDX-License-Identifier: MIT */

/*
 * Writes the records of a history that never was: many machines, one run list each, a step of a
 * given factor at a given commit on every machine. For tests of size and speed.
 *
 *	make_history [-n RUNS] [-m MACHINES] [-r RUNS_A_COMMIT] [-s STEP_AT] [-f FACTOR]
 *		     [-p SERIES] [-x SEED] NOISE
 *
 * NOISE: a file of numbers that the means are drawn from; -p: arms a machine. Commits are numbers
 * with 12 hex digits in the kernel release; their time is that of their first run.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/message.h"
#include "base/parse.h"
#include "base/random.h"
#include "compare/values.h"

struct plan {
	int64_t runs, machines, arms, each, step, seed;
	double factor;
	struct values noise;
};

static void write_uuid(struct random *random)
{
	uint64_t high = random_next(random), low = random_next(random);

	printf("%08" PRIx64 "-%04" PRIx64 "-4%03" PRIx64 "-%04" PRIx64 "-%012" PRIx64, high >> 32,
	       (high >> 16) & 0xffff, high & 0xfff, 0x8000 | (low >> 50), low & 0xffffffffffff);
}

static void write_time(int64_t seconds)
{
	time_t time = (time_t)seconds;
	struct tm tm;
	char text[32];

	gmtime_r(&time, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S.000Z", &tm);
	fputs(text, stdout);
}

static void write_run(const struct plan *plan, struct random *random, int64_t machine, int64_t arm,
		      int64_t commit, int64_t number)
{
	double factor = commit >= plan->step ? plan->factor : 1;
	double mean = plan->noise.values[random_below(random, plan->noise.count)] * factor;
	double jitter = 1 + 0.1 * random_unit(random);

	fputs("{\"schema\":\"syslatency/run/1\",\"id\":\"", stdout);
	write_uuid(random);
	printf("\",\"benchmark\":\"gem_syslatency\",\"arm\":\"arm%" PRId64 "\",\"variant\":"
	       "\"stock\",\"backend\":\"shm\",\"measure\":\"thp\",\"loads\":[\"gem\",\"swap\"],"
	       "\"scope\":\"memcg\",\"started\":\"",
	       arm);
	write_time(1700000000 + commit * 3600 + number);
	printf("\",\"duration_s\":8.0,\"interrupted\":false,\"latency\":{\"count\":4000,"
	       "\"mean_us\":%.17g,\"stddev_us\":%.17g,\"min_us\":11.2,\"max_us\":%.17g,"
	       "\"p50_us\":%.17g,\"p90_us\":%.17g,\"p99_us\":%.17g,\"p99_9_us\":null,"
	       "\"p99_99_us\":null,\"early\":0,\"missed\":0,\"stall_us\":0.0},",
	       mean, 2 * mean * jitter, 40 * mean * jitter, 0.6 * mean * jitter,
	       1.8 * mean * jitter, 9 * mean * jitter);
	printf("\"histogram\":{\"unit\":\"ns\",\"sub_bucket_bits\":7,\"buckets\":[[11200,%d],[%lld,"
	       "%d]]},\"environment\":{\"kernel\":\"6.12.0-rc1-00042-g%012" PRIx64 "\"},",
	       2000, (long long)(mean * 1000), 2000, (uint64_t)commit + 0x100000000000);
	printf("\"validity\":{\"verdict\":\"valid\",\"reasons\":[]},\"trace_level\":\"off\","
	       "\"status\":\"ok\",\"block\":%lld,\"order\":%lld,\"machine_key\":\"%016" PRIx64 "\","
	       "\"metrics\":{},\"settings\":{\"duration_s\":8.0,\"limit_bytes\":2147483648,"
	       "\"footprint_bytes\":1073741824,\"pace_us\":2000.0,\"clock_read_ns\":%.3f}}\n",
	       (long long)number + 1, (long long)number + 1, (uint64_t)machine + 0xabc000,
	       25 + random_unit(random));
}

static void write_history(const struct plan *plan)
{
	struct random random;
	int64_t written = 0;

	random_seed(&random, (uint64_t)plan->seed);
	for (int64_t commit = 0; written < plan->runs; commit++)
		for (int64_t machine = 0; machine < plan->machines; machine++)
			for (int64_t arm = 0; arm < plan->arms; arm++)
				for (int64_t i = 0; i < plan->each && written < plan->runs; i++) {
					write_run(plan, &random, machine, arm, commit, i);
					written++;
				}
}

static int take(struct plan *plan, int option, const char *text)
{
	switch (option) {
	case 'n':
		return parse_int64(text, 1, INT64_MAX, &plan->runs);
	case 'm':
		return parse_int64(text, 1, 100000, &plan->machines);
	case 'p':
		return parse_int64(text, 1, 1000, &plan->arms);
	case 'r':
		return parse_int64(text, 1, 1000, &plan->each);
	case 's':
		return parse_int64(text, 0, INT64_MAX, &plan->step);
	case 'x':
		return parse_int64(text, 0, INT64_MAX, &plan->seed);
	case 'f':
		return parse_double(text, &plan->factor);
	default:
		return -EINVAL;
	}
}

int main(int argc, char **argv)
{
	struct plan plan = {1000, 1, 1, 5, INT64_MAX, 1, 1.0, {NULL, 0, 0}};
	struct message message = {""};
	int option;

	while ((option = getopt(argc, argv, "n:m:p:r:s:x:f:")) != -1) {
		if (take(&plan, option, optarg ? optarg : "") < 0) {
			fprintf(stderr, "make_history: -%c: a number is wanted\n", option);
			return 2;
		}
	}
	if (optind + 1 != argc || values_read(argv[optind], 1, &plan.noise, &message) < 0) {
		fprintf(stderr, "make_history: %s\n",
			message.text[0] ? message.text : "one file of noise is wanted");
		return 2;
	}
	write_history(&plan);
	free(plan.noise.values);
	return fflush(stdout) == 0 ? 0 : 1;
}
