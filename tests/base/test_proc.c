/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <errno.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/proc.h"

static char tree[256];

static int open_machine(void **state)
{
	machine_set_root(testing_make_tree(tree, sizeof(tree)));
	return 0;
}

static int close_machine(void **state)
{
	machine_set_root(NULL);
	testing_remove_tree(tree);
	return 0;
}

static void memory_is_told_in_bytes(void **state)
{
	struct proc_memory memory = {7, 7, 7};

	assert_int_equal(proc_read_memory(&memory), -ENOENT);
	assert_int_equal(memory.total_bytes, 7);
	assert_int_equal(proc_available_bytes(), 0);
	testing_write(tree, "/proc/meminfo",
		      "MemTotal:        2048 kB\nMemFree:  5 kB\nMemAvailable:   1024 kB\n");
	assert_int_equal(proc_read_memory(&memory), 0);
	assert_int_equal(memory.total_bytes, 2 << 20);
	assert_int_equal(memory.available_bytes, 1 << 20);
	assert_int_equal(memory.swap_total_bytes, -1);
	assert_int_equal(proc_available_bytes(), 1 << 20);
}

static void hostile_memory_is_not_known(void **state)
{
	static const char *const texts[] = {
		"",
		"MemAvailable:",
		"MemAvailable: x kB\n",
		"MemAvailable: -5 kB\n",
		"MemAvailable: 9223372036854775807 kB\n",
		"MemAvailable: 99999999999999999999 kB\n",
		"NotMemAvailable: 5 kB\n",
	};
	struct proc_memory memory;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		testing_write(tree, "/proc/meminfo", texts[i]);
		assert_int_equal(proc_read_memory(&memory), 0);
		assert_int_equal(memory.available_bytes, -1);
		assert_int_equal(proc_available_bytes(), 0);
	}
}

static void vmstat_by_name(void **state)
{
	static const char *const names[] = {"nr_mlock", "pgscan", "absent"};
	struct proc_unevictable unevictable = {7, 7};
	int64_t values[3];

	assert_int_equal(proc_read_vmstat(names, 3, values), -ENOENT);
	testing_write(tree, "/proc/vmstat", "nr_mlock 3\npgscan_anon 5\npgscan 9\n");
	assert_int_equal(proc_read_vmstat(names, 3, values), 0);
	assert_int_equal(values[0], 3);
	assert_int_equal(values[1], 9);
	assert_int_equal(values[2], -1);
	assert_int_equal(proc_read_unevictable(&unevictable), -EBADMSG);
	assert_int_equal(unevictable.pages, 7);
	testing_write(tree, "/proc/vmstat", "nr_mlock 3\nnr_unevictable 5\n");
	assert_int_equal(proc_read_unevictable(&unevictable), 0);
	assert_int_equal(unevictable.pages, 5);
	assert_int_equal(unevictable.mlock_pages, 3);
}

static void pressure_of_each_kind(void **state)
{
	static const struct {
		const char *text;
		int64_t some_us, full_us;
	} cases[] = {
		{"some avg10=0.00 avg60=0.00 avg300=0.00 total=12\n"
		 "full avg10=0.00 avg60=0.00 avg300=0.00 total=3\n",
		 12, 3},
		{"full avg10=0.00 avg60=0.00 avg300=0.00 total=3\n", -1, 3},
		{"some avg10=0.00\nfull avg10=0.00 total=3\n", -1, 3},
		{"", -1, -1},
		{"some", -1, -1},
		{"someone total=5\n", -1, -1},
	};
	struct proc_pressure pressure = {7, 7};

	assert_int_equal(proc_read_pressure("memory", &pressure), -ENOENT);
	assert_int_equal(pressure.some_us, 7);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		testing_write(tree, "/proc/pressure/memory", cases[i].text);
		assert_int_equal(proc_read_pressure("memory", &pressure), 0);
		assert_int_equal(pressure.some_us, cases[i].some_us);
		assert_int_equal(pressure.full_us, cases[i].full_us);
	}
}

static void processors_one_by_one(void **state)
{
	const char *text = "cpu  1 2 3 4 5 6 7 8 9 10\n"
			   "cpu0 1 2 3 4 5 6 7\n"  /* before 2.6.11: no steal */
			   "cpu1 1 2 3 4 5 6 7 \n" /* the next line is not its own */
			   "cpux 1 2 3 4 5 6 7 8\n"
			   "cpu-3 1 2 3 4 5 6 7 8\n"
			   "cpu99999999999999999999 1 2 3 4 5 6 7 8\n"
			   "cpu\n"
			   "cpu7 10 20 30 40 50 60 70 80\n"
			   "intr 1 2 3\n"
			   "cpu8 1 2 3 4 5 6 7 8\n";
	struct proc_cpu cpu;

	assert_true(proc_next_cpu(&text, &cpu));
	assert_int_equal(cpu.cpu, -1);
	assert_int_equal(cpu.busy_ticks, 19);
	assert_int_equal(cpu.steal_ticks, 8);
	assert_true(proc_next_cpu(&text, &cpu));
	assert_int_equal(cpu.cpu, 7);
	assert_int_equal(cpu.busy_ticks, 190);
	assert_int_equal(cpu.steal_ticks, 80);
	assert_false(proc_next_cpu(&text, &cpu));
	text = "";
	assert_false(proc_next_cpu(&text, &cpu));
	assert_true(proc_tick_ns() > 0);
}

static void a_command_may_hold_anything(void **state)
{
	struct proc_process process;
	DIR *folder;

	testing_write(
		tree, "/proc/41/stat",
		"41 (a) R 1 (b\n c) S 7 41 40 0 -1 2097152 1 2 3 4 50 60 7 8 20 0 1 0 1234 99 1\n");
	testing_write(tree, "/proc/self/stat",
		      "1 (self) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 0 0 0 0 9\n");
	folder = proc_open_processes();
	assert_non_null(folder);
	assert_true(proc_next_process(folder, &process));
	assert_int_equal(process.pid, 41);
	assert_string_equal(process.command, "a) R 1 (b\n c");
	assert_int_equal(process.state, 'S');
	assert_int_equal(process.parent, 7);
	assert_int_equal(process.session, 40);
	assert_true(process.kernel_thread);
	assert_int_equal(process.cpu_ticks, 110);
	assert_int_equal(process.start_ticks, 1234);
	assert_false(proc_next_process(folder, &process));
	closedir(folder);
}

static void what_is_no_process_is_passed_over(void **state)
{
	static const char *const texts[] = {
		"",
		"1",
		"1 (",
		"1 )(",
		"1 (x)",
		"1 (x) ",
		"1 (x) S",
		"1 (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 0 0 0 0",
		"1 (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 0 0 0 y 9",
		"1 (x)S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 0 0 0 0 9",
	};
	struct proc_process process;
	char path[32];
	DIR *folder;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		snprintf(path, sizeof(path), "/proc/%zu/stat", i + 1);
		testing_write(tree, path, texts[i]);
	}
	testing_write(tree, "/proc/99/other", "");
	folder = proc_open_processes();
	assert_non_null(folder);
	assert_false(proc_next_process(folder, &process));
	closedir(folder);
}

static void the_running_kernel_tells_of_us(void **state)
{
	struct proc_process process = {.pid = 7};

	assert_int_equal(proc_read_process(getpid(), &process), 0); /* in spite of the prefix */
	assert_int_equal(process.pid, getpid());
	assert_int_equal(process.parent, getppid());
	assert_int_equal(process.session, getsid(0));
	assert_int_equal(process.state, 'R');
	assert_false(process.kernel_thread);
	process.pid = 7;
	assert_int_equal(proc_read_process(0, &process), -ESRCH);
	assert_int_equal(process.pid, 7);
}

#define WITH_MACHINE(test) cmocka_unit_test_setup_teardown(test, open_machine, close_machine)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_MACHINE(memory_is_told_in_bytes),
		WITH_MACHINE(hostile_memory_is_not_known),
		WITH_MACHINE(vmstat_by_name),
		WITH_MACHINE(pressure_of_each_kind),
		cmocka_unit_test(processors_one_by_one),
		WITH_MACHINE(a_command_may_hold_anything),
		WITH_MACHINE(what_is_no_process_is_passed_over),
		WITH_MACHINE(the_running_kernel_tells_of_us),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
