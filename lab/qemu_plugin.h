/* SPDX-License-Identifier: MIT */
#ifndef LAB_QEMU_PLUGIN_H
#define LAB_QEMU_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What lab/profile.c uses of the interface of QEMU's TCG plugins, version 1.
 * Debian ships no header of it. Source: docs/devel/tcg-plugins.rst of QEMU 7.2.
 */
struct qemu_plugin_tb;
struct qemu_plugin_insn;

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_RW = 3 };
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };

typedef void (*qemu_plugin_run_t)(unsigned int cpu, void *data);
typedef void (*qemu_plugin_memory_t)(unsigned int cpu, uint32_t info, uint64_t address, void *data);

/* Of the plugin; QEMU calls it with the arguments "key=value". */
extern int qemu_plugin_version;
int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv);

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
					   void (*translated)(uint64_t id,
							      struct qemu_plugin_tb *tb));
void qemu_plugin_register_atexit_cb(uint64_t id, void (*ends)(uint64_t id, void *data), void *data);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, qemu_plugin_run_t runs,
					  enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_plugin_run_t runs,
					    enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn,
						enum qemu_plugin_op op, void *to, uint64_t value);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, qemu_plugin_memory_t accesses,
				      enum qemu_plugin_cb_flags flags, enum qemu_plugin_mem_rw rw,
				      void *data);
bool qemu_plugin_mem_is_store(uint32_t info);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

#endif
