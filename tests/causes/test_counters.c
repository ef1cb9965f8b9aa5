/* SPDX-License-Identifier: MIT */
/* Causes from counters alone, on a machine laid out in a folder. */
#include "support/testing.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "ops.h"
#include "record/record.h"
#include "sys/steal.h"

extern const struct cause_ops cause_counters;

#define MEMORY(some) \
	"some avg10=0.00 avg60=0.00 avg300=0.00 total=" some "\nfull avg10=0.00 total=7\n"

struct machine {
	char tree[128];
	void *state;
	struct sampling_thread *thread;
	struct record *record;
};

static void lay_out(struct machine *machine, const char *stat, const char *vmstat,
		    const char *memory)
{
	testing_write(machine->tree, "/proc/stat", stat);
	testing_write(machine->tree, "/proc/vmstat", vmstat);
	if (memory)
		testing_write(machine->tree, "/proc/pressure/memory", memory);
}

static void set_up(struct machine *machine)
{
	struct cause_settings settings = {.level = 1, .worst = 3, .guest = true};
	struct message message;

	memset(machine, 0, sizeof(*machine));
	testing_make_tree(machine->tree, sizeof(machine->tree));
	machine_set_root(machine->tree);
	machine->thread = calloc(1, sizeof(*machine->thread));
	machine->record = record_new("test");
	machine->record->counters = json_object();
	lay_out(machine, "cpu  0 0 0 0 0 0 0 5 0 0\ncpu0 0 0 0 0 0 0 0 5 0 0\n",
		"pgscan_anon 100\npswpout 10\n", MEMORY("1000"));
	assert_int_equal(cause_counters.start(&settings, &machine->state, &message), 0);
}

static void tear_down(struct machine *machine)
{
	machine_set_root(NULL);
	testing_remove_tree(machine->tree);
	record_free(machine->record);
	free(machine->thread);
}

static const json_t *finish(struct machine *machine, int64_t begin_ns)
{
	struct cause_end end = {
		.threads = machine->thread, .thread_count = 1, .begin_ns = begin_ns};

	assert_int_equal(cause_counters.finish(machine->state, &end, machine->record, NULL), 0);
	assert_int_equal(json_array_size(machine->record->causes), 1);
	assert_string_equal(json_string_value(json_at(machine->record->counters, "causes.from")),
			    "counters");
	assert_string_equal(machine->record->trace_level, "off");
	return json_array_get(machine->record->causes, 0);
}

static void test_tells_what_went_on(void **state)
{
	int64_t begin_ns = clock_now_ns();
	struct machine machine;
	const json_t *entry;

	set_up(&machine);
	machine.thread->worst[3] = (struct sampling_worst){
		.when_ns = clock_now_ns(), .late_ns = 9 * NS_PER_MS, .steal_ns = -1};
	clock_sleep_for(10 * NS_PER_MS);
	lay_out(&machine, "cpu  0 0 0 0 0 0 0 5 0 0\ncpu0 0 0 0 0 0 0 0 5 0 0\n",
		"pgscan_anon 1100\npswpout 30\n", MEMORY("9000"));
	cause_counters.poll(machine.state, machine.thread, 1);
	/* What comes later is no part of it. */
	lay_out(&machine, "cpu  0 0 0 0 0 0 0 5 0 0\ncpu0 0 0 0 0 0 0 0 5 0 0\n",
		"pgscan_anon 777777\npswpout 777777\n", MEMORY("777777"));
	entry = finish(&machine, begin_ns);
	assert_string_equal(json_get_string(entry, "cause", ""), "unknown");
	assert_int_equal(json_get_int64(json_object_get(entry, "around"), "pgscan_anon", -1), 1000);
	assert_int_equal(json_get_int64(json_object_get(entry, "around"), "pswpout", -1), 20);
	assert_int_equal(json_get_int64(json_object_get(entry, "around"), "psi_memory_some_us", -1),
			 8000);
	assert_non_null(strstr(json_get_string(entry, "sentence", ""),
			       "1000 pages were scanned, 20 swapped out"));
	tear_down(&machine);
}

static void test_steal_is_known_without_events(void **state)
{
	int64_t begin_ns = clock_now_ns();
	struct machine machine;
	const json_t *entry;

	set_up(&machine);
	machine.thread->worst[0] = (struct sampling_worst){
		.when_ns = clock_now_ns(), .late_ns = 40 * NS_PER_MS, .steal_ns = -1};
	/* Counted a tick after the delay, and looked at before that too. */
	clock_sleep_for(41 * NS_PER_MS);
	cause_counters.poll(machine.state, machine.thread, 1);
	clock_sleep_for(STEAL_COUNTED_NS);
	lay_out(&machine, "cpu  0 0 0 0 0 0 0 9 0 0\ncpu0 0 0 0 0 0 0 0 9 0 0\n",
		"pgscan_anon 1100\npswpout 30\n", MEMORY("9000"));
	cause_counters.poll(machine.state, machine.thread, 1);
	entry = finish(&machine, begin_ns);
	assert_string_equal(json_get_string(entry, "cause", ""), "steal");
	assert_non_null(strstr(json_get_string(entry, "sentence", ""), "the host stopped CPU 0"));
	tear_down(&machine);
}

/* A kernel without pressure and with few counters: less is said, nothing fails. */
static void test_poor_machine(void **state)
{
	struct machine machine;
	const json_t *entry;

	set_up(&machine);
	testing_remove_tree(machine.tree);
	machine.thread->worst[0] = (struct sampling_worst){
		.when_ns = clock_now_ns(), .late_ns = 2 * NS_PER_MS, .steal_ns = -1};
	cause_counters.poll(machine.state, machine.thread, 1);
	entry = finish(&machine, 0);
	assert_non_null(strstr(json_get_string(entry, "sentence", ""),
			       "no counter of reclaim could be read"));
	assert_true(json_is_null(json_at(entry, "evidence.steal_us")));
	assert_int_equal(mkdir(machine.tree, 0755), 0);
	tear_down(&machine);
}

static void test_abandoned(void **state)
{
	struct machine machine;

	set_up(&machine);
	assert_int_equal(cause_counters.finish(machine.state, NULL, NULL, NULL), 0);
	tear_down(&machine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tells_what_went_on),
		cmocka_unit_test(test_steal_is_known_without_events),
		cmocka_unit_test(test_poor_machine),
		cmocka_unit_test(test_abandoned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
