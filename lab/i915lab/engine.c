// SPDX-License-Identifier: MIT
/*
 * Engines that let time pass: a request occupies its engine from the end of what is before it for
 * the length of its batch. A timer stands for the GPU's interrupt, a tasklet for i915's.
 */
#include <linux/slab.h>

#include "i915lab.h"

/* A context's ring of 16 KiB holds about as many requests; who finds it full waits for half of
 * them. */
#define RING_REQUESTS 64
#define THROTTLE_MS 20

/* The engine and the submitting task have a reference each; what the request holds goes with the
 * last. */
void lab_request_put(struct lab_request *request)
{
	if (!refcount_dec_and_test(&request->references))
		return;
	while (request->count)
		drm_gem_object_put(request->objects[--request->count]);
	if (request->context)
		lab_context_put(request->context);
	kvfree(request);
}

/* Arms the timer for the first end that somebody waits for, else for that of the last request. */
static void arm(struct lab_engine *engine)
{
	struct lab_request *request;
	ktime_t at = 0;

	list_for_each_entry(request, &engine->requests, link)
	{
		at = request->end;
		if (request->interrupt)
			break;
	}
	if (at && (!engine->interrupt_at || at < engine->interrupt_at)) {
		engine->interrupt_at = at;
		hrtimer_start(&engine->timer, at, HRTIMER_MODE_ABS);
	}
}

static enum hrtimer_restart on_timer(struct hrtimer *timer)
{
	struct lab_engine *engine = container_of(timer, struct lab_engine, timer);

	tasklet_hi_schedule(&engine->retire);
	return HRTIMER_NORESTART;
}

static void retire(struct tasklet_struct *tasklet)
{
	struct lab_engine *engine = from_tasklet(engine, tasklet, retire);
	struct lab_request *request, *next;
	LIST_HEAD(done);

	spin_lock(&engine->lock);
	list_for_each_entry_safe(request, next, &engine->requests, link)
	{
		if (request->end > ktime_get())
			break;
		list_move_tail(&request->link, &done);
		request->context->queued[engine->index]--;
	}
	engine->interrupt_at = 0;
	arm(engine);
	spin_unlock(&engine->lock);
	wake_up_all(&engine->wait);
	list_for_each_entry_safe(request, next, &done, link) lab_request_put(request);
}

void lab_engine_init(struct lab *lab, unsigned int index)
{
	struct lab_engine *engine = &lab->engines[index];

	engine->lab = lab;
	engine->index = index;
	spin_lock_init(&engine->lock);
	INIT_LIST_HEAD(&engine->requests);
	init_waitqueue_head(&engine->wait);
	hrtimer_init(&engine->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	engine->timer.function = on_timer;
	tasklet_setup(&engine->retire, retire);
}

void lab_engine_submit(struct lab_engine *engine, struct lab_request *request, ktime_t after,
		       u64 length_ns)
{
	refcount_inc(&request->references);
	spin_lock_bh(&engine->lock);
	request->submitted = ktime_get();
	request->end = ktime_add_ns(max3(request->submitted, after, engine->busy_until), length_ns);
	engine->busy_until = request->end;
	request->context->queued[engine->index]++;
	list_add_tail(&request->link, &engine->requests);
	arm(engine);
	spin_unlock_bh(&engine->lock);
}

/* Has the engine interrupt once what ends at @end is done. */
void lab_engine_interrupt(struct lab_engine *engine, ktime_t end)
{
	struct lab_request *request;

	spin_lock_bh(&engine->lock);
	list_for_each_entry(request, &engine->requests, link)
	{
		if (request->end >= end) {
			request->interrupt = true;
			break;
		}
	}
	arm(engine);
	spin_unlock_bh(&engine->lock);
}

/* @timeout_ns below 0: without limit. 0, -ETIME, -ERESTARTSYS. */
int lab_engine_wait(struct lab_engine *engine, ktime_t end, s64 timeout_ns)
{
	if (ktime_get() >= end)
		return 0;
	if (timeout_ns == 0)
		return -ETIME;
	lab_engine_interrupt(engine, end);
	if (timeout_ns < 0)
		return wait_event_interruptible(engine->wait, ktime_get() >= end);
	return wait_event_interruptible_hrtimeout(engine->wait, ktime_get() >= end,
						  ns_to_ktime(timeout_ns));
}

void lab_engine_wait_uninterruptible(struct lab_engine *engine, ktime_t end)
{
	if (ktime_get() >= end)
		return;
	lab_engine_interrupt(engine, end);
	wait_event(engine->wait, ktime_get() >= end);
}

/*
 * The end of the @context's request after which half its ring is free, or 0 when it is not full.
 */
static ktime_t when_half_empty(struct lab_engine *engine, struct lab_context *context)
{
	struct lab_request *request;
	unsigned int left;
	ktime_t end = 0;

	spin_lock_bh(&engine->lock);
	left = context->queued[engine->index];
	if (left >= RING_REQUESTS) {
		list_for_each_entry(request, &engine->requests, link)
		{
			end = request->end;
			if (request->context == context && --left <= RING_REQUESTS / 2)
				break;
		}
	}
	spin_unlock_bh(&engine->lock);
	return end;
}

/* 0 once the ring has room, -EINTR, -EWOULDBLOCK. */
int lab_engine_make_room(struct lab_engine *engine, struct lab_context *context, bool block)
{
	ktime_t end = when_half_empty(engine, context);

	if (!end)
		return 0;
	if (!block)
		return ktime_get() >= end ? 0 : -EWOULDBLOCK;
	return lab_engine_wait(engine, end, -1) ? -EINTR : 0;
}

/* Waits for what this file submitted 20 ms ago and earlier. */
int lab_throttle_ioctl(struct drm_device *device, void *data, struct drm_file *file)
{
	ktime_t before = ktime_sub_ms(ktime_get(), THROTTLE_MS);
	struct lab *lab = to_lab(device);
	unsigned int i;

	for (i = 0; i < LAB_ENGINES; i++) {
		struct lab_engine *engine = &lab->engines[i];
		struct lab_request *request;
		ktime_t end = 0;
		int error;

		spin_lock_bh(&engine->lock);
		list_for_each_entry(request, &engine->requests,
				    link) if (request->context->file == file &&
					      request->submitted <= before) end = request->end;
		spin_unlock_bh(&engine->lock);
		error = lab_engine_wait(engine, end, -1);
		if (error)
			return error;
	}
	return 0;
}
