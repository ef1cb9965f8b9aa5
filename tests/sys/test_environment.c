/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "base/array.h"
#include "base/json.h"
#include "config.h"
#include "sys/environment.h"
#include "sys/kernel_config.h"

static char root[TREE_SIZE];

static int set_up(void **state)
{
	testing_open_machine(root);
	return 0;
}

static int tear_down(void **state)
{
	testing_close_machine(root);
	return 0;
}

static const char *text_at(const json_t *environment, const char *path)
{
	const json_t *value = json_at(environment, path);

	if (!value || !json_is_string(value))
		fail_msg("%s is absent or no string", path);
	return json_string_value(value);
}

static int64_t number_at(const json_t *environment, const char *path)
{
	const json_t *value = json_at(environment, path);

	if (!value || !json_is_integer(value))
		fail_msg("%s is absent or no integer", path);
	return json_integer_value(value);
}

static void lay_out_desktop(void)
{
	testing_write(root, "/proc/sys/kernel/osrelease", "6.1.0-38-amd64\n");
	testing_write(root, "/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian\n");
	testing_write(root, "/proc/cmdline", "root=/dev/sda1 quiet preempt=full mitigations=off\n");
	testing_write(root, "/boot/config-6.1.0-38-amd64",
		      "# comment\nCONFIG_HZ=250\nCONFIG_HZ_250=y\nCONFIG_PREEMPT_VOLUNTARY=y\n"
		      "# CONFIG_KASAN is not set\nCONFIG_LRU_GEN=y\nCONFIG_PREEMPT_DYNAMIC=y\n");
	testing_write(
		root, "/proc/cpuinfo",
		"processor\t: 0\nmodel name\t: Intel(R) Core(TM) i7-7500U CPU @ 2.70GHz\n"
		"microcode\t: 0xf4\nflags\t\t: fpu vme\nprocessor\t: 1\nmodel name\t: other\n");
	testing_write(root, "/sys/devices/system/cpu/present", "0-3\n");
	testing_write(root, "/sys/devices/system/cpu/online", "0-2\n");
	testing_write(root, "/sys/devices/system/cpu/isolated", "\n");
	testing_write(root, "/sys/devices/system/cpu/smt/control", "on\n");
	for (int cpu = 0; cpu < 3; cpu++) {
		char path[128];

		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", cpu);
		testing_write(root, path, cpu == 2 ? "powersave\n" : "performance\n");
	}
	testing_write(root, "/sys/devices/system/cpu/cpu0/cpuidle/state0/name", "POLL\n");
	testing_write(root, "/sys/devices/system/cpu/cpu0/cpuidle/state1/name", "C1\n");
	testing_write(root, "/sys/devices/system/cpu/cpu0/cpuidle/state1/disable", "1\n");
	testing_write(root, "/sys/devices/system/cpu/vulnerabilities/mds", "Not affected\n");
	testing_write(root, "/sys/devices/system/cpu/vulnerabilities/l1tf", "Vulnerable\n");
	testing_write(root, "/proc/meminfo",
		      "MemTotal:       16254304 kB\nMemFree: 1 kB\nSwapTotal: 1048572 kB\n");
	testing_write(
		root, "/proc/swaps",
		"Filename\tType\tSize\tUsed\tPriority\n/dev/sda2  partition\t1048572\t0\t-2\n");
	testing_write(root, "/sys/kernel/mm/transparent_hugepage/enabled",
		      "always [madvise] never\n");
	testing_write(root, "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n");
	testing_write(root, "/sys/kernel/mm/lru_gen/enabled", "0x0007\n");
	testing_write(
		root, "/proc/cgroups",
		"#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t0\t9\t1\nmemory\t0\t9\t1\n");
	testing_write(root, "/sys/class/dmi/id/sys_vendor", "LENOVO\n");
	testing_write(root, "/sys/class/dmi/id/product_name", "20HM\n");
	testing_write(root, "/sys/class/dmi/id/board_name", "20HMS\n");
}

static void test_desktop(void **state)
{
	json_t *environment;

	lay_out_desktop();
	environment = environment_describe();
	assert_non_null(environment);
	assert_string_equal(text_at(environment, "kernel"), "6.1.0-38-amd64");
	assert_string_equal(text_at(environment, "cmdline"),
			    "root=/dev/sda1 quiet preempt=full mitigations=off");
	assert_string_equal(text_at(environment, "preemption"), "full");
	assert_string_equal(text_at(environment, "preemption_source"), "command line");
	assert_string_equal(text_at(environment, "config.HZ"), "250");
	assert_string_equal(text_at(environment, "config.LRU_GEN"), "y");
	assert_null(json_at(environment, "config.KASAN"));
	assert_string_equal(text_at(environment, "cpu_model"),
			    "Intel(R) Core(TM) i7-7500U CPU @ 2.70GHz");
	assert_string_equal(text_at(environment, "microcode"), "0xf4");
	assert_true(json_is_false(json_at(environment, "guest")));
	assert_int_equal(number_at(environment, "cpus_present"), 4);
	assert_int_equal(number_at(environment, "cpus_online"), 3);
	assert_string_equal(text_at(environment, "cpus_isolated"), "");
	assert_true(json_is_null(json_at(environment, "cpus_nohz_full")));
	assert_string_equal(text_at(environment, "frequency.governor"), "performance/powersave");
	assert_string_equal(
		json_string_value(json_array_get(json_at(environment, "idle.states"), 1)), "-C1");
	assert_string_equal(text_at(environment, "mitigations.l1tf"), "Vulnerable");
	assert_null(json_at(environment, "mitigations.mds"));
	assert_int_equal(number_at(environment, "memory_bytes"), INT64_C(16254304) * 1024);
	assert_string_equal(
		json_string_value(json_array_get(json_at(environment, "swap_areas"), 0)),
		"/dev/sda2");
	assert_string_equal(text_at(environment, "thp.enabled"), "madvise");
	assert_string_equal(text_at(environment, "mglru"), "0x0007");
	assert_string_equal(text_at(environment, "cgroup_memory"), "v2");
	assert_string_equal(text_at(environment, "machine.product"), "20HM");
	assert_string_equal(text_at(environment, "tool.version"), SYSLATENCY_VERSION);
	json_decref(environment);
}

static const char *preemption_of(const char *version, const char *cmdline, const char *debugfs)
{
	static char word[64];
	json_t *environment;

	testing_write(root, "/proc/sys/kernel/osrelease", "6.1\n");
	testing_write(root, "/proc/sys/kernel/version", version);
	testing_write(root, "/proc/cmdline", cmdline);
	if (debugfs)
		testing_write(root, "/sys/kernel/debug/sched/preempt", debugfs);
	environment = environment_describe();
	snprintf(word, sizeof(word), "%s", json_get_string(environment, "preemption", "null"));
	json_decref(environment);
	return word;
}

static void test_preemption_models(void **state)
{
	assert_string_equal(preemption_of("#1 SMP\n", "quiet\n", NULL), "null");
	assert_string_equal(preemption_of("#1 SMP PREEMPT_RT x\n", "\n", NULL), "rt");
	assert_string_equal(preemption_of("#1 SMP PREEMPT RT x\n", "\n", NULL), "rt");
	assert_string_equal(preemption_of("#1 SMP PREEMPT x\n", "\n", NULL), "full");
	assert_string_equal(preemption_of("#1 PREEMPT_DYNAMIC\n", "preempt=none x\n", NULL),
			    "none");
	testing_write(root, "/boot/config-6.1", "CONFIG_PREEMPT_LAZY=y\n");
	assert_string_equal(preemption_of("#1 PREEMPT_DYNAMIC\n", "x\n", NULL), "lazy");
	assert_string_equal(
		preemption_of("#1 PREEMPT_DYNAMIC\n", "preempt=none\n", "none (voluntary) full\n"),
		"voluntary");
}

static void test_nothing_can_be_read(void **state)
{
	json_t *environment = environment_describe();
	char key[17];

	assert_non_null(environment);
	assert_true(json_is_null(json_at(environment, "cpu_model")));
	assert_true(json_is_null(json_at(environment, "cmdline")));
	assert_true(json_is_null(json_at(environment, "config")));
	assert_true(json_is_null(json_at(environment, "memory_bytes")));
	assert_true(json_is_null(json_at(environment, "cgroup_memory")));
	environment_machine_key(environment, key);
	assert_int_equal(strlen(key), 16);
	json_decref(environment);
}

static void test_machine_key(void **state)
{
	json_t *environment;
	char key[17], other[17];

	lay_out_desktop();
	environment = environment_describe();
	environment_machine_key(environment, key);
	assert_int_equal(strspn(key, "0123456789abcdef"), 16);
	json_decref(environment);

	/* another boot: kernel, command line, a little memory, an offline CPU, microcode */
	testing_write(root, "/proc/sys/kernel/osrelease", "6.12.1\n");
	testing_write(root, "/proc/cmdline", "quiet\n");
	testing_write(root, "/proc/meminfo", "MemTotal:       16264304 kB\n");
	testing_write(root, "/sys/devices/system/cpu/online", "0-3\n");
	environment = environment_describe();
	environment_machine_key(environment, other);
	assert_string_equal(key, other);
	json_decref(environment);

	/* another machine: twice the memory; another board */
	testing_write(root, "/proc/meminfo", "MemTotal:       32554304 kB\n");
	environment = environment_describe();
	environment_machine_key(environment, other);
	assert_string_not_equal(key, other);
	json_decref(environment);
	lay_out_desktop();
	testing_write(root, "/sys/class/dmi/id/board_name", "other\n");
	environment = environment_describe();
	environment_machine_key(environment, other);
	assert_string_not_equal(key, other);
	json_decref(environment);
	/* a key from a record whose environment is null is a key too */
	environment_machine_key(NULL, other);
	assert_int_equal(strlen(other), 16);
}

static void test_cgroup_versions(void **state)
{
	static const struct {
		const char *cgroups, *controllers, *version;
	} cases[] = {
		{"#x\ncpu\t1\t1\t1\nmemory\t4\t3\t1\n", NULL, "v1"},
		{"#x\nmemory\t0\t3\t1\n", NULL, "v2"},
		{"#x\nmemory\t0\t3\t0\n", NULL, "null"},
		{"#x\ncpu\t0\t3\t1\n", "cpu memory pids\n", "v2"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *environment;

		testing_write(root, "/proc/cgroups", cases[i].cgroups);
		if (cases[i].controllers)
			testing_write(root, "/sys/fs/cgroup/cgroup.controllers",
				      cases[i].controllers);
		environment = environment_describe();
		assert_string_equal(json_get_string(environment, "cgroup_memory", "null"),
				    cases[i].version);
		json_decref(environment);
	}
}

static void test_config_values(void **state)
{
	static const char text[] = "CONFIG_HZ_250=y\nCONFIG_HZ=250\n# CONFIG_KSM is not set\n"
				   "CONFIG_LOCALVERSION=\"-x\"\nCONFIG_LAST=m";
	char value[8];

	assert_int_equal(kernel_config_get(text, "HZ", value, sizeof(value)), 0);
	assert_string_equal(value, "250");
	assert_int_equal(kernel_config_get(text, "LAST", value, sizeof(value)), 0);
	assert_string_equal(value, "m");
	assert_int_equal(kernel_config_get(text, "KSM", value, sizeof(value)), -ENOENT);
	assert_int_equal(kernel_config_get(text, "HZ_2", value, sizeof(value)), -ENOENT);
	assert_int_equal(kernel_config_get(text, "HZ", value, 3), -EOVERFLOW);
	assert_int_equal(kernel_config_get("", "HZ", value, sizeof(value)), -ENOENT);
}

static void test_compressed_config(void **state)
{
#if HAVE_ZLIB
	const char *source = NULL;
	char command[PATH_MAX + 128], value[8], *text = NULL;

	testing_write(root, "/proc/plain", "CONFIG_HZ=1000\n");
	snprintf(command, sizeof(command), "gzip -c '%s/proc/plain' > '%s/proc/config.gz'", root,
		 root);
	if (system(command) != 0)
		skip();
	testing_write(root, "/boot/config-6.1", "CONFIG_HZ=250\n");
	assert_int_equal(kernel_config_read("6.1", &text, &source), 0);
	assert_string_equal(source, "/proc/config.gz");
	assert_int_equal(kernel_config_get(text, "HZ", value, sizeof(value)), 0);
	assert_string_equal(value, "1000");
	free(text);
#else
	skip();
#endif
}

/* The real machine: quick, small, and the same twice over but for the cost of the clock. */
static void test_real_machine(void **state)
{
	json_t *first, *second;
	char key[17], again[17];
	char *line;

	machine_set_root(NULL);
	first = environment_describe();
	second = environment_describe();
	assert_non_null(first);
	assert_non_null(second);
	assert_true(strlen(text_at(first, "kernel")) > 0);
	assert_true(json_real_value(json_at(first, "clock_read_ns")) > 0);
	environment_machine_key(first, key);
	environment_machine_key(second, again);
	assert_string_equal(key, again);
	line = json_line(first);
	assert_true(strlen(line) < 8192);
	free(line);
	json_object_del(first, "clock_read_ns");
	json_object_del(second, "clock_read_ns");
	assert_true(json_equal(first, second));
	json_decref(first);
	json_decref(second);
}

/* The lab's machine names its clock; a key of its own keeps its times out of a real machine's
 * series. */
static void test_virtual_clock(void **state)
{
	json_t *virtual, *real;
	char key_virtual[17], key_real[17];

	testing_write(root, "/proc/cmdline",
		      "quiet syslat.clock=virtual syslat.ns_per_instruction=2 syslat.seed=7\n");
	virtual = environment_describe();
	testing_write(root, "/proc/cmdline", "quiet nosyslat.clock=virtual syslat.seed=x\n");
	real = environment_describe();
	assert_string_equal(text_at(virtual, "clock"), "virtual");
	assert_int_equal(json_integer_value(json_at(virtual, "ns_per_instruction")), 2);
	assert_int_equal(json_integer_value(json_at(virtual, "boot_seed")), 7);
	assert_string_equal(text_at(real, "clock"), "real");
	assert_true(json_is_null(json_at(real, "ns_per_instruction")));
	assert_true(json_is_null(json_at(real, "boot_seed")));
	environment_machine_key(virtual, key_virtual);
	environment_machine_key(real, key_real);
	assert_string_not_equal(key_virtual, key_real);
	json_decref(virtual);
	json_decref(real);
}

/* Readers know a hypervisor by its name, the record keeps the signature as it was read. */
static void test_hypervisor_names(void **state)
{
	static const struct {
		const char *signature, *name;
	} rows[] = {{"KVMKVMKVM", "KVM"},
		    {"bhyve bhyve ", "bhyve"},
		    {"TCGTCGTCGTCG", "QEMU (emulated)"},
		    {"SomethingNew", "SomethingNew"}};
	json_t *environment;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		environment = json_pack("{s:b,s:s}", "guest", 1, "hypervisor", rows[i].signature);
		assert_string_equal(environment_hypervisor_name(environment), rows[i].name);
		json_object_set_new(environment, "guest", json_false());
		assert_null(environment_hypervisor_name(environment));
		json_decref(environment);
	}
	environment = json_pack("{s:b,s:n}", "guest", 1, "hypervisor");
	assert_null(environment_hypervisor_name(environment));
	assert_null(environment_hypervisor_name(NULL));
	json_decref(environment);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(test_desktop),
		CASE(test_preemption_models),
		CASE(test_nothing_can_be_read),
		CASE(test_machine_key),
		CASE(test_virtual_clock),
		CASE(test_hypervisor_names),
		CASE(test_cgroup_versions),
		CASE(test_config_values),
		CASE(test_compressed_config),
		CASE(test_real_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
