/* SPDX-License-Identifier: MIT */
#ifndef OPS_H
#define OPS_H

/*
 * The contracts of the plugin kinds. A plugin is one file that ends in a const ops struct
 * named <kind>_<name> (measure_wakeup, load_swap, backend_shm...) and one word in the Meson list of
 * its folder; the tables below are generated from those lists.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cpuset.h"
#include "base/message.h"
#include "base/options.h"
#include "base/random.h"
#include "judge/claim.h"
#include "explain/explain.h"
#include "record/sampling.h"
#include "record/variant.h"
#include "sys/cgroup.h"

/*
 * What every ops struct begins with. Options are the plugin's own: rows that fill its own settings
 * (option_row.settings), ended by an empty row; NULL: none. Parsing, help, man page and
 * "settings.options" of the record come from them.
 */
#define PLUGIN_HEAD                 \
	const char *name, *summary; \
	const struct option_row *options

struct plugin {
	PLUGIN_HEAD;
};

struct arm_set;
struct comparison_report;
struct transaction;
struct record;

/* ---- backend: where the gem load's buffers come from ---- */

enum buffer_phase { BUFFER_ALLOCATE, BUFFER_POPULATE, BUFFER_PIN, BUFFER_RELEASE, BUFFER_PHASES };

/* One buffer; the backend keeps what it needs in the last members. Zeroed by the caller. */
struct buffer {
	uint64_t bytes;
	int64_t phase_ns[BUFFER_PHASES];     /* time each phase took (pin_cycle, statistics) */
	int64_t phase_cpu_ns[BUFFER_PHASES]; /* processor time of the calling thread in it */
	uint64_t handle;		     /* GEM handle, shmid, memfd: the backend's */
	void *memory;			     /* mapping when there is one */
	void *private_data;
};

struct backend_settings {
	enum variant variant;
	const char *device;	/* --device; NULL: choose */
	const char *pin_method; /* NULL: best of what works */
	bool leak;		/* -m: hand released buffers to the shrinker (i915) */
	bool dependencies;	/* -i */
	int64_t batch_ns;	/* -r in nanoseconds; negative: raw bytes as in IGT */
	bool in_memcg; /* the load is under a group's limit: shrinkers of drivers are not called
			  there */
	struct transaction
		*transaction; /* for what must be undone after SIGKILL; may be NULL in tests */
};

/* An open backend; public part. Backends embed it first in their own struct. */
struct backend {
	const struct backend_ops *ops;
	struct backend_settings settings;
	const char *pin_method;	      /* what was chosen: "vmsplice", "io_uring", "driver"... */
	const char *release_context;  /* "load" or "shrinker" */
	const char *notes[4];	      /* things to say in the record, NULL-terminated when fewer */
	const char *observed_variant; /* what a driver's pages were seen to be; NULL: made here, or
					 not known */
	_Atomic(const char *)
		failure; /* why a call failed, when errno alone says too little; static text */
};

/* What a backend is like; asked instead of its name. */
enum backend_flags {
	/* A driver's node: --device is for it. Without the bit it needs nothing and works
	   everywhere. */
	BACKEND_NEEDS_DEVICE = 1 << 0,
	/* Holds pages in each way of .variants by itself. Without the bit the booted kernel decides
	   (one way), and a variant is a label that is checked against what is observed. */
	BACKEND_MAKES_VARIANTS = 1 << 1,
	/* With -m its buffers are released in the driver's shrinker, which reclaim of a memory
	   group does not call. */
	BACKEND_RELEASES_IN_SHRINKER = 1 << 2,
};

struct backend_ops {
	PLUGIN_HEAD;
	unsigned int flags;    /* enum backend_flags */
	const char *cure;      /* a command that helps where it cannot be opened; NULL: none */
	int preference;	       /* "auto" takes the highest that opens; 0: only when named */
	unsigned int variants; /* bits 1 << enum variant that it can make; on a driver: labels that
				  it accepts */

	/* Probes and opens. -ENODEV / -EACCES / -ENOTSUP with what was found and what to do. */
	int (*open)(const struct backend_settings *settings, struct backend **ret_backend,
		    struct message *message);
	/* Allocate, populate and pin @buffer->bytes, timing each phase. -ENOMEM when the budget of
	 * the machine or group ends. Thread-safe: several threads share one open backend. */
	int (*allocate)(struct backend *backend, struct buffer *buffer);
	/* Submit work that uses the buffer on every engine (i915 execbuf); *ret_submitted counts.
	 * NULL: there is no engine; populating wrote every page already. */
	int (*exercise)(struct backend *backend, struct buffer *buffer, struct random *random,
			uint64_t *ret_submitted);
	/* Unpin and release (or leak, when settings.leak and the kernel has a shrinker for it). */
	int (*release)(struct backend *backend, struct buffer *buffer);
	void (*close)(struct backend *backend);
	/* Maps a held buffer once more, unlocked, for whoever walks its pages; the caller unmaps
	 * buffer->bytes by munmap(2). NULL: cannot (memory of a driver is no target of reclaim). */
	int (*map)(struct backend *backend, struct buffer *buffer, void **ret_memory);
	/* Names for settings.pin_method, NULL-terminated; NULL: there is one way only. */
	const char *const *pin_methods;
};

/* ---- load: what runs beside the measure ---- */

#define LOAD_EXTRA 12

enum load_state { LOAD_STARTING, LOAD_STEADY, LOAD_DONE }; /* steady: its working set is built */

/* Shared memory between a load's process(es) and the supervisor; cleared before the start. */
struct load_shared {
	_Atomic int32_t state;	     /* enum load_state, or the negative errno of a failure */
	_Atomic int32_t stop;	     /* set by the supervisor */
	_Atomic uint64_t ops, bytes; /* operations done and bytes moved, since the start */
	_Atomic uint64_t extra[LOAD_EXTRA]; /* named by load_ops.extra_names */
	_Atomic uint64_t pinned_bytes;	    /* held pinned now (gem) */
	char pin_method[32];
	char release_context[16];
	struct message message; /* why it failed */
	struct message note;	/* something to say in the record; "" none */
};

struct load_settings {
	const struct load_ops *ops;
	const struct backend_ops *backend; /* gem */
	struct backend_settings backend_settings;
	uint64_t footprint_bytes; /* gem: held pinned through the run */
	uint64_t budget_bytes;	  /* most memory (or disk) that the load may hold; for swap: its
				     traffic */
	double rate_per_s; /* offered operations a second over the whole load; 0: as fast as it can
			    */
	struct cpu_list cpus; /* gem: one worker a CPU */
	bool in_memcg;	      /* the group of the scope was entered already */
	uint64_t limit_bytes; /* of that group; 0 none */
	uint64_t seed;
	struct transaction *transaction;
};

/* What the body of a load gets. */
struct load {
	struct load_settings settings;
	struct load_shared *shared;
};

static inline bool load_stopping(const struct load *load)
{
	return atomic_load_explicit(&load->shared->stop, memory_order_relaxed) != 0;
}

struct load_ops {
	PLUGIN_HEAD;
	unsigned int flags; /* enum load_flags of judge/claim.h */
	char igt_flag;	    /* IGT's flag that asks for it ('b'); 0: none does */
	const char *cure;   /* a command that helps where it cannot run; NULL: none is known */
	/* NULL-terminated, at most LOAD_EXTRA; unit in the name. Counts, given as what the window
	 * added; a name that starts with '=' (left out of the record) is a level, given as it is at
	 * the end. */
	const char *const *extra_names;
	const struct claim *claims; /* ends with a NULL name */
	uint64_t (*default_budget)(const struct load_settings *settings); /* NULL: needs none */
	/* Can it run here? -errno with what is missing. NULL: anywhere. In the supervisor, by
	   load_start() and by syslat check. */
	int (*check)(const struct load_settings *settings, struct message *message);
	/* The body, in a process of its own (inside the group already); may make threads; sets
	 * LOAD_STEADY when steady; returns when load_stopping() or -errno. Signals are not its
	 * concern. */
	int (*run)(struct load *load);
};

/* ---- measure: what is timed ---- */

enum schedule { SCHEDULE_IGT, SCHEDULE_FIXED };

struct measure_settings {
	enum schedule schedule;
	int64_t interval_ns;  /* SCHEDULE_FIXED */
	int64_t pace_ns;      /* MEASURE_PACES: sleep between samples; 0: none (IGT) */
	double clock_cost_ns; /* mean cost of one clock read, subtracted as IGT does */
	uint64_t seed;
	bool count_steal; /* read the CPU's steal after delays over 1 ms */
};

/* Sent to a sampling thread, again and again, to end its sleep when *stop is set. */
#define MEASURE_STOP_SIGNAL SIGRTMIN

struct sample_sink; /* sampler/sample_file.h: where every sample goes when --samples is given */

/* What a sampling thread's loop gets; all memory exists and is locked before the loop. */
struct measure_thread {
	const struct measure_settings *settings;
	struct sampling_thread *shared;
	_Atomic int32_t *stop;	   /* checked once a sample */
	_Atomic int64_t *start_ns; /* common origin of the schedule */
	int64_t offset_ns;	   /* of this thread's deadlines in the fixed schedule */
	struct random random;
	void *scratch; /* measure_ops.scratch_bytes, populated */
	/* NULL: no --samples. Lock-free, never blocks; overflow is counted. @index: of the
	 * schedule. */
	void (*emit)(struct measure_thread *thread, int64_t when_ns, int64_t late_ns);
	void *emit_data;
};

struct measure_ops {
	PLUGIN_HEAD;
	unsigned int flags; /* enum measure_flags of judge/claim.h */
	char igt_flag;	    /* IGT's flag that asks for it ('m'); 0: none does */
	const char *cure;   /* a command that helps where it cannot measure; NULL: none is known */
	const struct claim *claims;
	/* Names of the parts of a sample, which the loop gives sampling_add_phase();
	   NULL-terminated, SAMPLING_PHASES at most. NULL: a sample has none. */
	const char *const *phases;
	enum explain_subject subject; /* what a sample is; default: a wakeup */
	size_t scratch_bytes;
	/* Can it measure here? -errno with what is missing. NULL: anywhere. Before anything of a
	   run is changed, and by syslat check. */
	int (*check)(const struct measure_settings *settings, struct message *message);
	/* In the sampling thread before it is ready: timers, reserved addresses. NULL: nothing to
	 * do. */
	int (*prepare)(struct measure_thread *thread);
	/* The sampling loop; returns when *stop. No allocation, lock, stdio or file access. */
	void (*loop)(struct measure_thread *thread);
};

/* ---- cause: collectors of why ---- */

struct cause_settings {
	int level;	    /* 1 light, 2 full */
	unsigned int worst; /* N delays to explain */
	struct cpu_list cpus;
	struct transaction *transaction;
	/* Ready, not yet sampling; NULL: only find out whether it works here. */
	const struct sampling_thread *threads;
	size_t thread_count;
	enum explain_subject subject; /* what a sample of the measure is */
	bool guest;		      /* a virtual machine */
	const char *perfetto_path;    /* NULL: none */
	int64_t buffer_kib;	      /* of trace events, a CPU; 0: 2 MiB */
};

/* What a run has come to when collecting ends. */
struct cause_end {
	const struct sampling_thread *threads; /* all ended */
	size_t thread_count;
	int64_t begin_ns; /* of the measured window */
};

struct cause_ops {
	PLUGIN_HEAD;
	const char *cure; /* a command that helps where it cannot start; NULL: none is known */
	/* -ENOTSUP, -EACCES...: what is missing and what would enable it in @message. */
	int (*start)(const struct cause_settings *settings, void **ret_state,
		     struct message *message);
	/* Called about ten times a second during the run with the threads' shared state. */
	void (*poll)(void *state, const struct sampling_thread *threads, size_t count);
	/*
	 * Ends collecting, frees the state and adds to the record, whose latencies and counters are
	 * filled: "causes", "trace_level" (tracefs), "counters.causes". @end NULL: end and free
	 * only.
	 */
	int (*finish)(void *state, const struct cause_end *end, struct record *record,
		      struct message *message);
};

/* ---- report: a record or a comparison for people ---- */

/* Where a program prints a report without being told its name. */
enum report_flags {
	REPORT_OF_RUN = 1 << 0,	       /* what gem_syslatency prints */
	REPORT_OF_CAUSES = 1 << 1,     /* --explain, syslat explain */
	REPORT_OF_COMPARISON = 1 << 2, /* syslat compare */
};

struct report_ops {
	PLUGIN_HEAD;
	unsigned int flags; /* enum report_flags */
	/* NULL: not for single runs. -errno of the stream. */
	int (*run)(FILE *stream, const struct record *record);
	/* compare/comparison.h; NULL: not for comparisons. -errno of the stream. */
	int (*compare)(FILE *stream, const struct comparison_report *report);
};

/* ---- export: runs in the format of another tool; linked by syslat alone ---- */

enum export_flags {
	EXPORT_ONE_METRIC = 1 << 0, /* a file holds one metric: one is chosen where none is named */
};

struct export_settings {
	const char *const *metrics; /* NULL-terminated: of formats that take some; never empty */
	const char *commit;	    /* NULL: as the kernel's release tells */
	const char *branch, *origin;
	bool include_invalid;
};

struct export_ops {
	PLUGIN_HEAD;
	unsigned int flags; /* enum export_flags */
	/* compare/arms.h. -EINVAL: cannot be said in this format, with the reason. */
	int (*write)(FILE *stream, const struct arm_set *set,
		     const struct export_settings *settings, struct message *message);
};

/* ---- import: results of another tool as records; linked by syslat alone ---- */

struct import_settings {
	const char *arm, *kernel, *machine; /* NULL: "imported", unknown */
	const char *started;		    /* RFC 3339; NULL: the file's time */
	const char *benchmark;		    /* NULL: the tool's name */
	const char *metric, *unit;	    /* of plain numbers; NULL: "value", "" */
};

struct import_list {
	struct record **records;
	size_t count, capacity;
};

struct import_ops {
	PLUGIN_HEAD;
	/* Is the text of this tool? */
	bool (*knows)(const char *text);
	/* Appends records without id's to the list (imports/import.h). -EINVAL with the line. */
	int (*read)(const char *text, const struct import_settings *settings,
		    struct import_list *list, struct message *message);
};

/* Generated tables, NULL-terminated. */
extern const struct measure_ops *const measures[];
extern const struct load_ops *const loads[];
extern const struct backend_ops *const backends[];
extern const struct cause_ops *const causes[];
extern const struct report_ops *const reports[];
extern const struct export_ops *const exports[];
extern const struct import_ops *const imports[]; /* the most particular first */

const struct measure_ops *measure_find(const char *name);
const struct load_ops *load_find(const char *name);
/* One of the tables, whatever its kind. */
#define PLUGINS(table) ((const struct plugin *const *)(const void *)(table))

/* "gem, swap": the names of a table, into @buffer; returns it. */
const char *plugin_names(const struct plugin *const *table, char *buffer, size_t size);
/* Appends the options of a table to @rows; returns how many there are then (@size at most). */
size_t plugin_options(const struct plugin *const *table, struct option_row *rows, size_t used,
		      size_t size);
/* The first that has all bits of @flags; NULL: none has. */
const struct measure_ops *measure_with(unsigned int flags);
const struct load_ops *load_with(unsigned int flags);
const struct report_ops *report_with(unsigned int flags);
/* The one that IGT's @flag asks for; NULL: none. */
const struct measure_ops *measure_of_igt(char flag);
const struct load_ops *load_of_igt(char flag);
const struct backend_ops *backend_find(const char *name);
/* Of those with all bits of @flags and a preference below @below the one with the highest: the
   order of "auto", by calling again with what it gave. NULL: none is left. */
const struct backend_ops *backend_preferred(unsigned int flags, int below);
const struct report_ops *report_find(const char *name);
const struct export_ops *export_find(const char *name);
const struct import_ops *import_find(const char *name);

#endif
