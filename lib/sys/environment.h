/* SPDX-License-Identifier: MIT */
#ifndef SYS_ENVIRONMENT_H
#define SYS_ENVIRONMENT_H

#include <jansson.h>

/*
 * All that could explain a difference between two machines or two boots, as the "environment"
 * object of a record. What cannot be read is null. New reference; NULL without memory.
 */
json_t *environment_describe(void);

/*
 * A stable key of the machine (not of the boot or kernel): hash of CPU model, CPU count, memory
 * rounded to whole GiB, board or hypervisor, GPU ids. 16 hex digits into @key. docs/method.md lists
 * the parts.
 */
void environment_machine_key(const json_t *environment, char key[17]);

/*
 * What people call the hypervisor of an environment ("KVM" for the signature "KVMKVMKVM"); a
 * signature that is not known as it is; NULL where the machine is no guest or none is named. Lives
 * as long as
 * @environment. Signatures: arch/x86/kernel/cpu/, Documentation/virt/ and the makers' manuals.
 */
const char *environment_hypervisor_name(const json_t *environment);

#endif
