/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/json.h"
#include "sys/environment.h"
#include "sys/environment_internal.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

/* The signature that a hypervisor gives at CPUID leaf 0x40000000: "KVMKVMKVM", "VMwareVMware"... */
static void hypervisor_signature(char signature[13])
{
	unsigned int eax, ebx = 0, ecx = 0, edx = 0;

	signature[0] = '\0';
	if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & (1U << 31)))
		return;
	__cpuid(0x40000000, eax, ebx, ecx, edx);
	memcpy(signature, &ebx, 4);
	memcpy(signature + 4, &ecx, 4);
	memcpy(signature + 8, &edx, 4);
	signature[12] = '\0';
}
#else
static void hypervisor_signature(char signature[13])
{
	signature[0] = '\0';
}
#endif

const char *environment_hypervisor_name(const json_t *environment)
{
	static const struct {
		const char *signature, *name;
	} known[] = {
		{"KVMKVMKVM", "KVM"},		{"TCGTCGTCGTCG", "QEMU (emulated)"},
		{"Microsoft Hv", "Hyper-V"},	{"VMwareVMware", "VMware"},
		{"XenVMMXenVMM", "Xen"},	{"xen", "Xen"},
		{"bhyve bhyve ", "bhyve"},	{"ACRNACRNACRN", "ACRN"},
		{"VBoxVBoxVBox", "VirtualBox"},
	};
	const char *signature = json_get_string(environment, "hypervisor", NULL);

	if (!json_is_true(json_object_get(environment, "guest")) || !signature || !*signature)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strcmp(signature, known[i].signature) == 0)
			return known[i].name;
	return signature;
}

static int put_hypervisor(json_t *environment)
{
	char signature[13], line[64];

	/* Xen says so in a file; the instruction would tell the real machine under a root prefix.
	 */
	if (machine_read_line("/sys/hypervisor/type", line, sizeof(line)) == 0)
		return json_put(environment, "hypervisor", json_string_or_null(line));
	if (*machine_root())
		return json_put(environment, "hypervisor", json_null());
	hypervisor_signature(signature);
	return json_put(environment, "hypervisor",
			json_string_or_null(*signature ? signature : NULL));
}

/* drivers/firmware/dmi-id.c; serial numbers are left out: they name a person's machine. */
static int put_machine(json_t *environment)
{
	static const struct {
		const char *key, *file;
	} rows[] = {{"vendor", "sys_vendor"},
		    {"product", "product_name"},
		    {"board", "board_name"},
		    {"bios", "bios_version"}};
	json_t *machine = json_object();
	int error = json_put(environment, "machine", machine);

	for (size_t i = 0; !error && i < ARRAY_SIZE(rows); i++) {
		char path[64];

		snprintf(path, sizeof(path), "/sys/class/dmi/id/%s", rows[i].file);
		error = environment_put_line(machine, rows[i].key, path);
	}
	return error;
}

/* "#name hierarchy num_cgroups enabled": hierarchy 0 is the unified one, v2. */
static int put_cgroup(json_t *environment)
{
	const char *version = NULL, *line;
	char *text, *controllers;

	if (machine_read("/proc/cgroups", &text, NULL) == 0) {
		int hierarchy, enabled;

		line = strstr(text, "\nmemory");
		if (line && sscanf(line, " memory %d %*d %d", &hierarchy, &enabled) == 2 && enabled)
			version = hierarchy ? "v1" : "v2";
		free(text);
	}
	/* A kernel without v1 may have no /proc/cgroups, or no line of the controller in it. */
	if (!version &&
	    machine_read("/sys/fs/cgroup/cgroup.controllers", &controllers, NULL) == 0) {
		if (strstr(controllers, "memory"))
			version = "v2";
		free(controllers);
	}
	return json_put(environment, "cgroup_memory", json_string_or_null(version));
}

int environment_put_host(json_t *environment)
{
	if (put_hypervisor(environment) || put_machine(environment) || put_cgroup(environment))
		return -ENOMEM;
	return 0;
}
