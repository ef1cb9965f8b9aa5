/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "config.h"
#include "sys/gpu.h"

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

static void link_to(const char *path, const char *target)
{
	char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s%s", root, path);
	assert_int_equal(symlink(target, full), 0);
}

static void write_pci(const char *slot, const char *class, const char *vendor, const char *device)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/class", slot);
	testing_write(root, path, class);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/vendor", slot);
	testing_write(root, path, vendor);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/device", slot);
	testing_write(root, path, device);
}

static void test_platforms(void **state)
{
	static const struct {
		uint16_t device;
		const char *platform;
	} cases[] = {
		{0x5916, "kbl"}, {0x591b, "kbl"},  {0x87c0, "kbl"},  {0x1912, "skl"},
		{0x1932, "skl"}, {0x9a49, "tgl"},  {0x0f31, "byt"},  {0x5a84, "bxt"},
		{0x0166, "ivb"}, {0x0152, "ivb"},  {0x0155, "byt"},  {0x3185, "glk"},
		{0x3e92, "cfl"}, {0x46a6, "adlp"}, {0x46d1, "adln"}, {0x56a0, "dg2"},
		{0x7d55, "mtl"}, {0x22b1, "bsw"},  {0x0412, "hsw"},  {0x1616, "bdw"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *platform = gpu_platform(0x8086, cases[i].device);

		if (!platform || strcmp(platform, cases[i].platform) != 0)
			fail_msg("%04x is %s, not %s", cases[i].device,
				 platform ? platform : "unknown", cases[i].platform);
	}
	assert_null(gpu_platform(0x8086, 0x0000));
	assert_null(gpu_platform(0x8086, 0xffff));
	assert_null(gpu_platform(0x1002, 0x5916));
}

static void test_no_gpu(void **state)
{
	json_t *gpus = gpu_list();

	assert_int_equal(json_array_size(gpus), 0);
	json_decref(gpus);
	write_pci("0000:00:1f.0", "0x060100\n", "0x8086\n", "0x9d4e\n");
	gpus = gpu_list();
	assert_int_equal(json_array_size(gpus), 0);
	json_decref(gpus);
}

static void test_kaby_lake(void **state)
{
	json_t *gpus;
	const json_t *gpu;

	write_pci("0000:00:02.0", "0x030000\n", "0x8086\n", "0x5916\n");
	link_to("/sys/bus/pci/devices/0000:00:02.0/driver", "../../../bus/pci/drivers/i915");
	gpus = gpu_list();
	assert_int_equal(json_array_size(gpus), 1);
	gpu = json_array_get(gpus, 0);
	assert_string_equal(json_get_string(gpu, "vendor", ""), "8086");
	assert_string_equal(json_get_string(gpu, "device", ""), "5916");
	assert_string_equal(json_get_string(gpu, "platform", ""), "kbl");
	assert_string_equal(json_get_string(gpu, "driver", ""), "i915");
	assert_true(json_is_null(json_object_get(gpu, "driver_version")));
#if HAVE_PCIACCESS
	if (access("/usr/share/misc/pci.ids", R_OK) == 0)
		assert_non_null(strstr(json_get_string(gpu, "name", ""), "HD Graphics 620"));
#endif
	json_decref(gpus);
}

/* Two cards and a platform device; connectors and cards of a PCI device are not counted again. */
static void test_several(void **state)
{
	json_t *gpus;

	write_pci("0000:03:00.0", "0x030200\n", "0x10de\n", "0x1eb8\n");
	link_to("/sys/bus/pci/devices/0000:03:00.0/driver", "../drivers/nvidia");
	testing_write(root, "/sys/module/nvidia/version", "550.1\n");
	write_pci("0000:00:01.0", "0x038000\n", "0x1af4\n", "0x1050\n");
	testing_write(root, "/sys/class/drm/card0/device/uevent", "x\n");
	link_to("/sys/class/drm/card0/device/driver", "../drivers/vgem");
	link_to("/sys/class/drm/card0/device/subsystem", "../bus/platform");
	testing_write(root, "/sys/class/drm/card1/device/uevent", "x\n");
	link_to("/sys/class/drm/card1/device/subsystem", "../bus/pci");
	testing_write(root, "/sys/class/drm/card1-HDMI-A-1/status", "connected\n");
	testing_write(root, "/sys/class/drm/renderD128/dev", "226:128\n");
	gpus = gpu_list();
	assert_int_equal(json_array_size(gpus), 3);
	assert_string_equal(json_get_string(json_array_get(gpus, 0), "slot", ""), "0000:00:01.0");
	assert_string_equal(json_get_string(json_array_get(gpus, 1), "driver_version", ""),
			    "550.1");
	assert_true(json_is_null(json_object_get(json_array_get(gpus, 1), "platform")));
	assert_string_equal(json_get_string(json_array_get(gpus, 2), "driver", ""), "vgem");
	assert_true(json_is_null(json_object_get(json_array_get(gpus, 2), "vendor")));
	json_decref(gpus);
}

static void test_real_machine(void **state)
{
	json_t *gpus;

	machine_set_root(NULL);
	gpus = gpu_list();
	assert_true(json_is_array(gpus));
	json_decref(gpus);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(test_platforms), CASE(test_no_gpu),       CASE(test_kaby_lake),
		CASE(test_several),   CASE(test_real_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
