/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>

#include "base/array.h"
#include "experiment/experiment.h"

/* The plan: arms, names, order, and its way through experiment.json. */

static struct experiment *plan_of(size_t arms, int64_t blocks, int64_t warm_up, uint64_t seed)
{
	struct experiment *experiment = experiment_new("trial");
	struct message message = {""};

	assert_non_null(experiment);
	for (size_t i = 0; i < arms; i++) {
		char name[8] = {(char)('a' + i)};

		assert_int_equal(experiment_add_arm_text(experiment, name, "echo 1", &message), 0);
	}
	experiment->blocks = blocks;
	experiment->warm_up_runs = warm_up;
	experiment->seed = seed;
	assert_int_equal(experiment_make_order(experiment, &message), 0);
	return experiment;
}

static void names_that_cannot_be_files_are_refused(void **state)
{
	static const char *const bad[] = {"",	 ".",	 "..",	    ".hidden", "-m",   "a/b",
					  "a b", "a\nb", "../../x", "ä",       "a\\b", "a*"};
	static const char *const good[] = {"baseline", "v3+fix", "6.1-rc2_x", "A.b"};
	struct message message;
	char longer[80];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(experiment_check_arm_name(bad[i], &message), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_int_equal(experiment_check_arm_name(good[i], &message), 0);
	memset(longer, 'a', sizeof(longer));
	longer[64] = '\0';
	assert_int_equal(experiment_check_arm_name(longer, &message), 0);
	longer[64] = 'a';
	longer[65] = '\0';
	assert_int_equal(experiment_check_arm_name(longer, &message), -EINVAL);
}

static void arms_that_cannot_be_are_refused(void **state)
{
	struct experiment *experiment = experiment_new("trial");
	struct message message = {""};

	assert_int_equal(experiment_add_arm_text(experiment, "a", "echo 1", &message), 0);
	assert_int_equal(experiment_add_arm_text(experiment, "a", "echo 2", &message), -EINVAL);
	assert_non_null(strstr(message.text, "twice"));
	assert_int_equal(
		experiment_add_arm_text(experiment, "b", "no-such-program-here 1", &message),
		-EINVAL);
	assert_non_null(strstr(message.text, "no-such-program-here"));
	assert_int_equal(experiment_add_arm_text(experiment, "c", "   ", &message), -EINVAL);
	assert_int_equal(experiment_add_arm_text(experiment, "d", "/etc/passwd", &message),
			 -EINVAL);
	assert_int_equal(experiment_add_arm_text(experiment, "e", "/tmp", &message), -EINVAL);
	experiment_free(experiment);
}

/* A shell is started only for what needs one. */
static void a_shell_only_where_one_is_needed(void **state)
{
	static const char *const needs[] = {"echo 'a b'",   "A=1 echo",	     "echo $X",
					    "echo 1 | cat", "echo 1;echo 2", "echo *",
					    "echo 1 >x",    "ls ~",	     "a\nb"};
	static const char *const plain[] = {"echo a=1", "  echo  -f\t1 ", "/bin/echo a,b:c@d%e+f"};
	struct experiment *experiment = experiment_new("trial");
	struct message message;
	char name[16];

	for (size_t i = 0; i < ARRAY_SIZE(needs); i++) {
		snprintf(name, sizeof(name), "n%zu", i);
		assert_int_equal(experiment_add_arm_text(experiment, name, needs[i], &message), 0);
		assert_true(experiment->arms[i].shell);
		assert_string_equal(experiment->arms[i].argv[2], needs[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++) {
		snprintf(name, sizeof(name), "p%zu", i);
		assert_int_equal(experiment_add_arm_text(experiment, name, plain[i], &message), 0);
		assert_false(experiment->arms[experiment->arm_count - 1].shell);
	}
	/* "  echo  -f\t1 " */
	assert_string_equal(experiment->arms[10].argv[0], "echo");
	assert_string_equal(experiment->arms[10].argv[1], "-f");
	assert_string_equal(experiment->arms[10].argv[2], "1");
	assert_null(experiment->arms[10].argv[3]);
	experiment_free(experiment);
}

static void a_variant_is_appended(void **state)
{
	struct experiment *experiment = experiment_new("trial");
	char *argv[] = {(char *)"echo", (char *)"-t", (char *)"it's", NULL};
	struct message message;
	char *line;

	assert_int_equal(experiment_add_arm(experiment, "stock", argv, "stock", &message), 0);
	line = command_line_format(experiment->arms[0].argv);
	assert_string_equal(line, "echo -t 'it'\\''s' --variant stock");
	free(line);
	experiment_free(experiment);
}

static void every_arm_stands_once_in_each_block(void **state)
{
	struct experiment *experiment = plan_of(4, 50, 2, 7);
	size_t first_place[4] = {0};

	for (int64_t block = -1; block <= 50; block++) {
		unsigned int seen = 0;

		for (size_t i = 0; i < 4; i++)
			seen |= 1u << experiment_arm_at(experiment, block, i);
		assert_int_equal(seen, 0xf);
		first_place[experiment_arm_at(experiment, block, 0)]++;
	}
	/* 52 blocks: an arm that never begins one has probability 4 x 0.75^52 = 1e-6 a seed. */
	for (size_t i = 0; i < 4; i++)
		assert_true(first_place[i] > 0);
	experiment_free(experiment);
}

static void the_seed_alone_makes_the_order(void **state)
{
	struct experiment *one = plan_of(4, 20, 0, 7), *same = plan_of(4, 20, 0, 7);
	struct experiment *other = plan_of(4, 20, 0, 8);
	size_t bytes = 80 * sizeof(*one->order);

	assert_memory_equal(one->order, same->order, bytes);
	assert_memory_not_equal(one->order, other->order, bytes);
	experiment_free(one);
	experiment_free(same);
	experiment_free(other);
}

static void no_blocks_or_too_many_are_refused(void **state)
{
	struct experiment *experiment = plan_of(2, 1, 0, 1);
	struct message message;

	experiment->blocks = 0;
	assert_int_equal(experiment_make_order(experiment, &message), -EINVAL);
	experiment->blocks = -3;
	assert_int_equal(experiment_make_order(experiment, &message), -EINVAL);
	experiment->blocks = INT64_C(1) << 40;
	assert_int_equal(experiment_make_order(experiment, &message), -EINVAL);
	experiment_free(experiment);
	experiment = experiment_new("empty");
	experiment->blocks = 1;
	assert_int_equal(experiment_make_order(experiment, &message), -EINVAL);
	experiment_free(experiment);
}

static void a_plan_comes_back_from_its_json(void **state)
{
	struct experiment *experiment = plan_of(3, 6, 1, (UINT64_C(1) << 53) - 1), *back;
	struct message message = {""};
	json_t *json, *again;
	char *text, *second;

	experiment->unit = strdup("us");
	experiment->higher_is_better = true;
	experiment->timeout_ns = INT64_C(1500000000);
	experiment->stopping.rule = RULE_UNTIL_DECIDED;
	experiment->stopping.reference = 1;
	experiment->stopping.metric = strdup("p99");
	experiment->arms[2].decision = strdup("slower");
	experiment->arms[2].decided_after = 5;
	assert_int_equal(experiment_set_kernel(experiment, "a", "6.1.0", &message), 0);
	assert_int_equal(experiment_set_kernel(experiment, "z", "6.1.0", &message), -EINVAL);
	json = experiment_to_json(experiment);
	assert_non_null(json);
	assert_int_equal(experiment_from_json(json, &back, &message), 0);
	again = experiment_to_json(back);
	text = json_dumps(json, JSON_INDENT(1));
	second = json_dumps(again, JSON_INDENT(1));
	assert_string_equal(text, second);
	assert_int_equal(back->timeout_ns, 1500000000);
	assert_memory_equal(back->order, experiment->order, 21 * sizeof(*back->order));
	free(text);
	free(second);
	json_decref(json);
	json_decref(again);
	experiment_free(experiment);
	experiment_free(back);
}

/* Every key that a plan needs, wrong in turn: a line that names it, and nothing made. */
static void a_damaged_plan_is_refused(void **state)
{
	static const struct {
		const char *key, *value, *told;
	} damages[] = {
		{"schema", "\"syslatency/experiment/9\"", "schema"},
		{"blocks", "0", "blocks"},
		{"blocks", "\"six\"", "blocks"},
		{"blocks", "7", "order"},
		{"warm_up_runs", "-1", "warm_up_runs"},
		{"warm_up_runs", "3", "warm_up_order"},
		{"seed", "-5", "seed"},
		{"arms", "[]", "arms"},
		{"arms", "[{\"name\": \"../a\", \"command\": [\"x\"]}]", "arms"},
		{"arms", "[{\"name\": \"a\", \"command\": [1]}]", "arms"},
		{"arms", "[{\"name\": \"a\", \"command\": []}]", "arms"},
		{"order", "null", "order"},
		{"order", "[[\"a\",\"a\"],[\"a\",\"b\"]]", "order"},
		{"order", "[[\"a\"],[\"a\",\"b\"]]", "order"},
		{"order", "[[\"a\",\"q\"],[\"a\",\"b\"]]", "order"},
		{"stopping", "{}", "stopping"},
		{"stopping", "{\"rule\": \"fixed\", \"against\": \"q\"}", "against"},
		{"working_directory", "null", "working_directory"},
	};
	struct experiment *experiment = plan_of(2, 2, 0, 1), *back = NULL;
	struct message message;

	for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
		json_t *json = experiment_to_json(experiment);

		json_object_set_new(json, damages[i].key,
				    json_loads(damages[i].value, JSON_DECODE_ANY, NULL));
		message.text[0] = '\0';
		assert_int_equal(experiment_from_json(json, &back, &message), -EINVAL);
		assert_null(back);
		assert_non_null(strstr(message.text, damages[i].told));
		json_decref(json);
	}
	experiment_free(experiment);
}

static void a_plan_is_saved_as_a_whole(void **state)
{
	char directory[] = "/tmp/syslatency-test.XXXXXX", path[64];
	struct experiment *experiment = plan_of(2, 3, 0, 1), *back;
	struct message message = {""};

	assert_non_null(mkdtemp(directory));
	assert_int_equal(experiment_save(experiment, directory, &message), 0);
	assert_int_equal(experiment_load(directory, &back, &message), 0);
	assert_int_equal(back->blocks, 3);
	experiment_free(back);
	snprintf(path, sizeof(path), "%s/experiment.json", directory);
	assert_int_equal(truncate(path, 100), 0);
	assert_true(experiment_load(directory, &back, &message) < 0);
	assert_non_null(strstr(message.text, "experiment.json"));
	unlink(path);
	assert_true(experiment_load(directory, &back, &message) < 0);
	rmdir(directory);
	assert_true(experiment_save(experiment, directory, &message) < 0);
	experiment_free(experiment);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_that_cannot_be_files_are_refused),
		cmocka_unit_test(arms_that_cannot_be_are_refused),
		cmocka_unit_test(a_shell_only_where_one_is_needed),
		cmocka_unit_test(a_variant_is_appended),
		cmocka_unit_test(every_arm_stands_once_in_each_block),
		cmocka_unit_test(the_seed_alone_makes_the_order),
		cmocka_unit_test(no_blocks_or_too_many_are_refused),
		cmocka_unit_test(a_plan_comes_back_from_its_json),
		cmocka_unit_test(a_damaged_plan_is_refused),
		cmocka_unit_test(a_plan_is_saved_as_a_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
