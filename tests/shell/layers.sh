#!/usr/bin/env bash
# The include rule of docs/architecture.md: a room includes only rooms above it; plugins never include
# each other; each optional library is seen by one room only.
. "$(dirname "$0")/lib.sh"
cd "$source_root" || exit 1

# room -> rooms that it may include, itself first
below="base"
declare -A allowed=()
# A room may include itself and the rooms named before it here; rooms on one line do not see each other.
floor() {
	local room
	for room in "$@"; do allowed[$room]="$room $below"; done
	below="$* $below"
}
floor base
floor stats
floor undo
floor sys
floor record
floor judge explain compare
below="ops.h $below"
plugins="measures loads backends causes reports exports imports"
ground=$below
# shellcheck disable=SC2086
floor $plugins
below=$ground # the rooms above see plugins through ops.h alone
floor sampler
floor run
floor experiment collapse pin_cycle
allowed[history]="history $below"

includes() { grep -HnoE '^#include "[^"]+"' "$@" 2>/dev/null | sed -E 's/#include "([^"]+)"/\1/'; }

faults_of_room() {
	local room=$1 file line path top
	includes lib/"$room"/*.[ch] | while IFS=: read -r file line path; do
		case "$path" in config.h | build_id.h) continue ;; esac
		top=${path%%/*}
		case " ${allowed[$room]} " in
		*" $top "*) ;;
		*) echo "$file:$line includes $path" ;;
		esac
	done
}

for room in "${!allowed[@]}"; do
	ls lib/"$room"/*.[ch] >/dev/null 2>&1 || continue
	faults=$(faults_of_room "$room")
	if [ -z "$faults" ]; then ok "lib/$room includes only rooms above it"; else
		not_ok "lib/$room includes only rooms above it"
		echo "$faults" | sed 's/^/# /'
	fi
done

# A plugin is one file, or a few with its name as prefix (i915.c, i915_engines.c); files without a
# plugin's name in front are shared helpers of the room (drm_node.c).
for room in $plugins; do
	names=$(sed -n "s/.*_names += \[\(.*\)\].*/\1/p" lib/"$room"/meson.build | tr -d "' " | tr ',' '\n')
	plugin_of() {
		local name
		for name in $names; do
			case "$(basename "$1")" in "$name".* | "${name}"_*) echo "$name" && return ;; esac
		done
	}
	faults=$(includes lib/"$room"/*.[ch] | while IFS=: read -r file line path; do
		case "$path" in "$room"/*) ;; *) continue ;; esac
		other=$(plugin_of "$path")
		[ -z "$other" ] || [ "$(plugin_of "$file")" = "$other" ] || echo "$file:$line includes $path"
	done)
	if [ -z "$faults" ]; then ok "plugins of lib/$room do not include each other"; else
		not_ok "plugins of lib/$room do not include each other"
		echo "$faults" | sed 's/^/# /'
	fi
done

# The contracts stand below the plugins.
faults=$(includes lib/ops.h | grep -vE ':(base|stats|undo|sys|record|judge|explain|compare)/' || true)
if [ -z "$faults" ]; then ok "ops.h stands below the plugins"; else
	not_ok "ops.h stands below the plugins"
	echo "# $faults"
fi

# only_in "library" PATTERN ROOM...
only_in() {
	local what=$1 pattern=$2 faults
	shift 2
	faults=$(grep -rnE "^#include <($pattern)" lib benchmarks tools | grep -vE "^($(IFS='|'; echo "$*"))" || true)
	if [ -z "$faults" ]; then ok "$what is seen only by $*"; else
		not_ok "$what is seen only by $*"
		echo "$faults" | sed 's/^/# /'
	fi
}
only_in libdrm '(drm|libdrm/|i915_drm|xf86drm)' lib/backends/
only_in liburing 'liburing' lib/backends/
only_in libpciaccess 'pciaccess' lib/sys/gpu
only_in libtracefs '(tracefs|tracefs/|event-parse|traceevent)' lib/causes/tracefs
only_in SQLite 'sqlite3' lib/history/
only_in libpq '(libpq|postgresql)' lib/history/

# The library returns errors; it neither prints nor exits.
faults=$(grep -nE '\b(printf|puts|perror|exit|abort|err|errx|warn)\(' lib/*/*.c | grep -vE '(s|v|vs|f|sn|vsn|d)printf\(|_exit\(|fputs|[a-z_]+_(exit|abort|err|warn)\(' | grep -vE ':[0-9]+:[[:space:]]*(/?\*|//)' || true)
if [ -z "$faults" ]; then ok "lib neither prints nor exits"; else
	not_ok "lib neither prints nor exits"
	echo "$faults" | sed 's/^/# /'
fi
finish
