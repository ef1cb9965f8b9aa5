/* SPDX-License-Identifier: MIT */
/*
 * A plugin of QEMU that counts the guest's instructions by the stack of kernel functions, in one
 * sample of the sampling loop: see docs/lab.md. Without a tracer in the guest, whose times stay as
 * they are.
 *
 * Each instruction adds one to a counter. At the start of each block of code the difference is
 * booked on the stack that ran so far. Stacks come from the addresses at which call and ret access
 * memory, kept for each of the guest's kernel stacks; what is called deeper has the lower address,
 * so a frame at or below the address of a later call or ret is over, whichever way it ended.
 *
 * Arguments: symbols=FILE (as /proc/kallsyms), output=PREFIX, index=N (which sample), last=N (count
 * only so many instructions before its end; 0: all).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/profile_mark.h"
#include "lab/profile_functions.h"
#include "lab/qemu_plugin.h"

#define FRAMES_MOST 256
#define STACK_BASE(address) ((address) & ~UINT64_C(0x3fff)) /* THREAD_SIZE of x86-64: 16 KiB */
#define NEAR_BYTES UINT64_C(0x100000)			    /* no function is longer */

/* In place of a function, the root of a task's stacks. */
#define TASK_ROOT UINT32_C(0x80000000)
/* With a function in a callback's data: here an interrupt or exception begins. */
#define ENTRY_BEGINS (UINT64_C(1) << 32)

struct frame {
	uint64_t address;  /* of the return address; 0: not yet known */
	uint32_t function; /* that called */
	uint32_t node;	   /* of the stack up to here; 0: not looked up */
	bool interrupted;  /* called nothing: an interrupt came */
};

struct task {
	uint64_t base;
	uint32_t index, node;
	size_t count;
	struct frame frames[FRAMES_MOST];
};

/* A stack as a tree: its last function below the stack that called it. */
struct node {
	uint32_t parent, function;
	uint64_t instructions;
};

struct piece {
	uint32_t node;
	uint32_t instructions;
};

static struct {
	const char *output;
	uint64_t index, last;
} settings;
static struct task **tasks;
static size_t task_count, task_capacity;
static struct node *nodes; /* [0] is none */
static size_t node_count, node_capacity;
static uint32_t *node_table; /* open addressing, of a power of two */
static size_t node_table_size;
static struct piece *pieces;
static size_t piece_count, piece_capacity;

static uint64_t accesses_due, accesses_seen; /* of call and ret */
static uint64_t instructions;		     /* of the machine since its start */
static struct task *running;		     /* whose kernel stack is in use */
static uint32_t function_now;		     /* that of the block that runs */
static struct task *sampling_task;	     /* seen at the sample's begin */
static bool in_sample, sample_done;
static uint32_t node_now;
static uint64_t booked;
static uint64_t loops, begun, ended;

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

#define reserve(items, capacity, count)                        \
	do {                                                   \
		if (array_reserve(items, capacity, count) < 0) \
			out_of_memory();                       \
	} while (0)

/* ---- stacks ---- */

static size_t node_slot(uint32_t parent, uint32_t function)
{
	uint64_t hash = ((uint64_t)parent << 32 | function) * UINT64_C(0x9e3779b97f4a7c15);
	size_t slot = (hash >> 32) & (node_table_size - 1);

	while (node_table[slot] && (nodes[node_table[slot]].parent != parent ||
				    nodes[node_table[slot]].function != function))
		slot = (slot + 1) & (node_table_size - 1);
	return slot;
}

static void enlarge_node_table(void)
{
	free(node_table);
	node_table_size = node_table_size ? 2 * node_table_size : 4096;
	node_table = calloc(node_table_size, sizeof(*node_table));
	if (!node_table)
		out_of_memory();
	for (size_t i = 1; i < node_count; i++)
		node_table[node_slot(nodes[i].parent, nodes[i].function)] = (uint32_t)i;
}

static uint32_t child(uint32_t parent, uint32_t function)
{
	size_t slot;

	if (2 * node_count >= node_table_size)
		enlarge_node_table();
	slot = node_slot(parent, function);
	if (!node_table[slot]) {
		reserve(&nodes, &node_capacity, node_count + 1);
		nodes[node_count] = (struct node){.parent = parent, .function = function};
		node_table[slot] = (uint32_t)node_count++;
	}
	return node_table[slot];
}

static struct task *task_of(uint64_t base)
{
	struct task *task;

	for (size_t i = 0; i < task_count; i++)
		if (tasks[i]->base == base)
			return tasks[i];
	reserve(&tasks, &task_capacity, task_count + 1);
	task = calloc(1, sizeof(*task));
	if (!task)
		out_of_memory();
	task->base = base;
	task->index = (uint32_t)task_count;
	tasks[task_count++] = task;
	return task;
}

static void push(struct task *task, uint64_t address, uint32_t function, bool interrupted)
{
	if (task->count == FRAMES_MOST)
		return;
	task->frames[task->count++] = (struct frame){
		.address = address, .function = function, .interrupted = interrupted};
}

/*
 * The node of the stack that runs: the callers', then the function of the running block.
 */
static uint32_t running_node(void)
{
	uint32_t node;
	size_t known;

	if (!running)
		return child(0, function_now);
	if (!running->node)
		running->node = child(0, TASK_ROOT | running->index);
	known = running->count;
	while (known > 0 && !running->frames[known - 1].node)
		known--;
	node = known > 0 ? running->frames[known - 1].node : running->node;
	for (; known < running->count; known++)
		node = running->frames[known].node = child(node, running->frames[known].function);
	return child(node, function_now);
}

/* Takes off what is over when a call or ret accesses the stack at @address. */
static void drop_frames(struct task *task, uint64_t address)
{
	size_t same = task->count;

	/* An interrupt's frames begin just above what its entry code calls. */
	if (task->count > 0 && task->frames[task->count - 1].address == 0)
		task->frames[task->count - 1].address = address + 8;
	/* Above the task's own frames may be those of an interrupt's stack, left by now. */
	while (same > 0 && STACK_BASE(task->frames[same - 1].address) != STACK_BASE(address))
		same--;
	if (same == 0)
		return; /* a stack that is just entered */
	while (same > 0 && STACK_BASE(task->frames[same - 1].address) == STACK_BASE(address) &&
	       task->frames[same - 1].address <= address)
		same--;
	task->count = same;
}

static struct task *task_at(uint32_t function, uint64_t address)
{
	if (!running || (functions[function].switches && STACK_BASE(address) != running->base))
		running = task_of(STACK_BASE(address));
	return running;
}

/*
 * QEMU 7.2 also reports as a call's what the processor stores next by itself, an interrupt's frame.
 * A call stores once and a ret loads once.
 */
static bool is_own_access(void)
{
	bool own = accesses_due != accesses_seen;

	accesses_seen = accesses_due;
	return own;
}

static void calls(unsigned int cpu, uint32_t info, uint64_t address, void *data)
{
	uint32_t function = (uint32_t)(uintptr_t)data;
	struct task *task;

	if (!qemu_plugin_mem_is_store(info) || !is_own_access())
		return;
	task = task_at(function, address);
	drop_frames(task, address);
	/* The first that an interrupt's entry calls moves the stack and returns from elsewhere. */
	if (functions[function].entry && task->count > 0 &&
	    task->frames[task->count - 1].function == function)
		task->count--;
	push(task, address, function, false);
}

static void returns(unsigned int cpu, uint32_t info, uint64_t address, void *data)
{
	if (!qemu_plugin_mem_is_store(info) && is_own_access())
		drop_frames(task_at((uint32_t)(uintptr_t)data, address), address);
}

/* Back to what was interrupted in the kernel. */
static void interrupt_returns(unsigned int cpu, void *data)
{
	size_t count = running ? running->count : 0;

	while (count > 0 && !running->frames[count - 1].interrupted)
		count--;
	if (count > 0)
		running->count = count - 1;
}

/* ---- counting ---- */

static void book(void)
{
	uint64_t more = instructions - booked;

	booked = instructions;
	if (more == 0)
		return;
	if (piece_count > 0 && pieces[piece_count - 1].node == node_now &&
	    pieces[piece_count - 1].instructions + more <= UINT32_MAX) {
		pieces[piece_count - 1].instructions += (uint32_t)more;
		return;
	}
	reserve(&pieces, &piece_capacity, piece_count + 1);
	pieces[piece_count++] = (struct piece){node_now, (uint32_t)more};
}

static void block_runs(unsigned int cpu, void *data)
{
	uint32_t function = (uint32_t)(uintptr_t)data;

	if (in_sample)
		book();
	if (running && function == FUNCTION_USER)
		running->count = 0;
	else if (running && ((uintptr_t)data & ENTRY_BEGINS) && function_now != FUNCTION_USER &&
		 !functions[function_now].entry)
		push(running, 0, function_now, true);
	function_now = function;
	if (in_sample)
		node_now = running_node();
}

static void halts(unsigned int cpu, void *data)
{
	if (!in_sample)
		return;
	book();
	node_now = child(node_now, FUNCTION_HALT);
}

static void loop_begins(unsigned int cpu, void *data)
{
	loops++;
}

static void sample_begins(unsigned int cpu, void *data)
{
	if (begun++ != settings.index || sample_done)
		return;
	sampling_task = running;
	in_sample = true;
	booked = instructions;
	node_now = running_node();
}

static void sample_ends(unsigned int cpu, void *data)
{
	ended++;
	if (!in_sample)
		return;
	book();
	in_sample = false;
	sample_done = true;
}

/* ---- translation ---- */

static bool is_legacy_prefix(unsigned char byte)
{
	return byte == 0x66 || byte == 0x67 || byte == 0xf2 || byte == 0xf3 || byte == 0x2e ||
	       byte == 0x3e || byte == 0x64 || byte == 0x65;
}

static void watch_kernel(struct qemu_plugin_insn *insn, uint32_t function)
{
	const unsigned char *code = qemu_plugin_insn_data(insn);
	size_t size = qemu_plugin_insn_size(insn), at = 0;
	void *data = (void *)(uintptr_t)function;
	qemu_plugin_memory_t accesses = NULL;

	while (at < size && is_legacy_prefix(code[at]))
		at++;
	if (at < size && (code[at] & 0xf0) == 0x40)
		at++;
	if (at >= size)
		return;
	if (code[at] == 0xe8 || (code[at] == 0xff && at + 1 < size && (code[at + 1] >> 3 & 7) == 2))
		accesses = calls;
	else if (code[at] == 0xc3 || code[at] == 0xc2)
		accesses = returns;
	if (accesses) {
		/* RW: QEMU 7.2 takes a wish for reads alone as one for writes. */
		qemu_plugin_register_vcpu_mem_cb(insn, accesses, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, data);
		qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64,
							   &accesses_due, 1);
	}
	/* Others only serialize: they return to themselves. */
	if (code[at] == 0xcf && strcmp(functions[function].name, "native_irq_return_iret") == 0)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, interrupt_returns,
						       QEMU_PLUGIN_CB_NO_REGS, data);
	else if (code[at] == 0xf4)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, halts, QEMU_PLUGIN_CB_NO_REGS, data);
}

static void watch_mark(struct qemu_plugin_insn *insn)
{
	static const unsigned char nop[] = {0x0f, 0x1f, 0x80};
	const unsigned char *code = qemu_plugin_insn_data(insn);
	qemu_plugin_run_t runs = NULL;
	uint32_t mark;

	if (qemu_plugin_insn_size(insn) != sizeof(nop) + sizeof(mark) ||
	    memcmp(code, nop, sizeof(nop)) != 0)
		return;
	memcpy(&mark, code + sizeof(nop), sizeof(mark));
	if (mark == PROFILE_MARK_LOOP)
		runs = loop_begins;
	else if (mark == PROFILE_MARK_BEGIN)
		runs = sample_begins;
	else if (mark == PROFILE_MARK_END)
		runs = sample_ends;
	if (runs)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, runs, QEMU_PLUGIN_CB_NO_REGS, NULL);
}

static void translated(uint64_t id, struct qemu_plugin_tb *tb)
{
	size_t count = qemu_plugin_tb_n_insns(tb);
	uint32_t function = FUNCTION_UNKNOWN;

	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t address = qemu_plugin_insn_vaddr(insn);
		uint32_t here = function_at(address);

		if (i == 0) {
			uint64_t data = here;

			if (functions[here].entry &&
			    (functions[here].address == address ||
			     strstr(functions[here].name, "_entries_start")))
				data |= ENTRY_BEGINS;
			qemu_plugin_register_vcpu_tb_exec_cb(tb, block_runs, QEMU_PLUGIN_CB_NO_REGS,
							     (void *)(uintptr_t)data);
		} else if (here != function) {
			qemu_plugin_register_vcpu_insn_exec_cb(
				insn, block_runs, QEMU_PLUGIN_CB_NO_REGS, (void *)(uintptr_t)here);
		}
		function = here;
		if (here == FUNCTION_USER)
			watch_mark(insn);
		else
			watch_kernel(insn, here);
		qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64,
							   &instructions, 1);
	}
}

/* ---- output ---- */

/* Whose stack this is, if not the sampling thread's. */
static const char *owner(const uint32_t *path, size_t count)
{
	const char *second = count > 1 ? functions[path[count - 2]].name : "";

	for (size_t i = 0; i < count; i++)
		if (strcmp(functions[path[i]].name, "cpu_startup_entry") == 0)
			return "idle";
	if (count > 2 && strcmp(second, "kthread") == 0)
		return functions[path[count - 3]].name;
	return "other program";
}

/* One line of folded stacks; the root is whose stack it is. */
static void print_stack(FILE *file, const struct node *node)
{
	uint32_t path[1024];
	size_t count = 0;
	const struct node *up = node;

	for (; !(up->function & TASK_ROOT) && count < sizeof(path) / sizeof(path[0]);
	     up = &nodes[up->parent]) {
		path[count++] = up->function;
		if (!up->parent)
			break;
	}
	if ((up->function & TASK_ROOT) && tasks[up->function & ~TASK_ROOT] == sampling_task)
		fputs("sampling thread", file);
	else
		fputs(owner(path, count), file);
	while (count-- > 0)
		fprintf(file, ";%s", functions[path[count]].name);
	fprintf(file, " %llu\n", (unsigned long long)node->instructions);
}

static FILE *open_output(const char *suffix)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s%s", settings.output, suffix);
	return fopen(path, "w");
}

/* Leaves the last of the sample, or all of it. */
static uint64_t count_pieces(void)
{
	uint64_t counted = 0, most = settings.last ? settings.last : UINT64_MAX;

	for (size_t i = piece_count; i-- > 0 && counted < most;) {
		uint64_t more = pieces[i].instructions;

		more = more > most - counted ? most - counted : more;
		counted += more;
		nodes[pieces[i].node].instructions += more;
	}
	return counted;
}

static void ends(uint64_t id, void *data)
{
	uint64_t counted = sample_done ? count_pieces() : 0, halted = 0;
	FILE *file = open_output(".folded");

	for (size_t i = 1; file && i < node_count; i++) {
		if (nodes[i].instructions > 0)
			print_stack(file, &nodes[i]);
		if (nodes[i].function == FUNCTION_HALT)
			halted += nodes[i].instructions;
	}
	if (file)
		fclose(file);
	file = open_output(".window");
	if (!file)
		return;
	fprintf(file, "loops=%llu samples=%llu counted=%llu halts=%llu\n",
		(unsigned long long)loops, (unsigned long long)ended, (unsigned long long)counted,
		(unsigned long long)halted);
	fclose(file);
}

static bool take(const char *argument, const char *name, const char **ret_value)
{
	size_t length = strlen(name);

	if (strncmp(argument, name, length) != 0 || argument[length] != '=')
		return false;
	*ret_value = argument + length + 1;
	return true;
}

__attribute__((visibility("default"))) int qemu_plugin_install(uint64_t id, const void *info,
							       int argc, char **argv)
{
	const char *symbols = NULL, *number;

	for (int i = 0; i < argc; i++) {
		if (take(argv[i], "symbols", &symbols) || take(argv[i], "output", &settings.output))
			continue;
		if (take(argv[i], "index", &number))
			settings.index = strtoull(number, NULL, 10);
		else if (take(argv[i], "last", &number))
			settings.last = strtoull(number, NULL, 10);
		else
			return -1;
	}
	if (!symbols || !settings.output || functions_read(symbols) < 0)
		return -1;
	reserve(&nodes, &node_capacity, 1);
	nodes[node_count++] = (struct node){0}; /* none */
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, ends, NULL);
	return 0;
}
