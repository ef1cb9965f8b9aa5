/* SPDX-License-Identifier: MIT */
/* What cannot be put back reaches the person, whether or not the run failed too. */
#include "undo/machine.h"

#include "base/json.h"
#include "run/put_back.h"

/* A transaction whose change cannot be undone: a folder lies in the setting's place. */
static struct transaction *open_and_break(const struct machine *machine)
{
	char path[400];
	struct transaction *transaction;

	snprintf(path, sizeof(path), "%s%s", machine->tree, KNOB);
	assert_int_equal(transaction_open(&transaction, "test", NULL), 0);
	assert_int_equal(transaction_write(transaction, KNOB, "20001", NULL), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	return transaction;
}

static void a_failed_run_says_both(void **state)
{
	struct message message = {"the sampler died"};

	run_put_back(open_and_break(*state), -EIO, NULL, &message);
	assert_ptr_equal(strstr(message.text, "the sampler died; not everything is put back: "),
			 message.text);
	assert_non_null(strstr(message.text, KNOB));
	assert_non_null(strstr(message.text, "syslat check --restore"));
}

static void a_failed_run_without_words_says_both(void **state)
{
	struct message message = {""};

	run_put_back(open_and_break(*state), -ENOMEM, NULL, &message);
	assert_non_null(strstr(message.text, strerrordesc_np(ENOMEM)));
	assert_non_null(strstr(message.text, KNOB));
}

static void a_result_is_kept_and_marked(void **state)
{
	struct message message = {"what was said on the way"};
	struct record *record = record_new("test");

	run_put_back(open_and_break(*state), 0, record, &message);
	assert_ptr_equal(strstr(message.text, "not everything is put back: "), message.text);
	assert_true(json_is_true(json_at(record->counters, "not_put_back")));
	assert_string_equal(json_string_value(json_array_get(record->notes, 0)), message.text);
	record_free(record);
}

static void what_is_put_back_is_not_told(void **state)
{
	struct message message = {"what was said on the way"}, failure = {"the sampler died"};
	struct record *record = record_new("test");
	struct transaction *transaction;

	assert_int_equal(transaction_open(&transaction, "test", NULL), 0);
	assert_int_equal(transaction_write(transaction, KNOB, "20001", NULL), 0);
	run_put_back(transaction, 0, record, &message);
	assert_string_equal(message.text, "");
	assert_null(record->counters);
	assert_value(KNOB, "10000");
	run_put_back(NULL, -EIO, record, &failure);
	assert_string_equal(failure.text, "the sampler died");
	record_free(record);
}

static void what_is_added_stays_whole(void **state)
{
	struct message message;
	char added[400];

	memset(message.text, 'a', sizeof(message.text) - 1);
	message.text[sizeof(message.text) - 1] = '\0';
	memset(added, 'b', sizeof(added) - 1);
	added[sizeof(added) - 1] = '\0';
	message_add(&message, "%s", added);
	assert_int_equal(strlen(message.text), sizeof(message.text) - 1);
	assert_non_null(strstr(message.text, "a; b"));
	assert_int_equal(strspn(strchr(message.text, 'b'), "b"), sizeof(added) - 1);
	message_add(NULL, "%s", added);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(a_failed_run_says_both),
		CASE(a_failed_run_without_words_says_both),
		CASE(a_result_is_kept_and_marked),
		CASE(what_is_put_back_is_not_told),
		cmocka_unit_test(what_is_added_stays_whole),
	};

	return cmocka_run_group_tests_name("run: put back", tests, NULL, NULL);
}
