/* SPDX-License-Identifier: MIT */
#include "run/put_back.h"

#include <string.h>

#include "base/json.h"

void run_put_back(struct transaction *transaction, int error, struct record *record,
		  struct message *message)
{
	struct message why = {""};

	if (message && !error)
		message->text[0] = '\0';
	else if (message && !message->text[0])
		message_set(message, error, "%s", strerrordesc_np(-error));
	if (transaction_close(transaction, &why) == 0)
		return;
	message_add(message, "not everything is put back: %s", why.text);
	if (!record)
		return;
	record_note(record, "not everything is put back: %s", why.text);
	if (!record->counters)
		record->counters = json_object();
	json_put(record->counters, "not_put_back", json_true());
}
