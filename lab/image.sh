# shellcheck shell=bash disable=SC2154,SC2034
# Sourced by scripts/lab: what the lab's machine has in its memory at the start.

# A file at the same path below $root, and the libraries that it needs.
lab_add_program() {
	local root=$1 file=$2 target=$3 library
	mkdir -p "$root/$(dirname "$target")"
	cp "$file" "$root/$target"
	ldd "$file" 2>/dev/null | grep -oE '/[^ ]+' | while read -r library; do
		[ -e "$root$library" ] || { mkdir -p "$root$(dirname "$library")" && cp -L "$library" "$root$library"; }
	done
}

# A file or folder of the user in /out; a program with what it needs.
lab_add_file() {
	local root=$1 file=$2 library
	if [ ! -f "$file" ] || [ ! -x "$file" ]; then
		cp -r "$file" "$root/out/"
		return 0
	fi
	lab_add_program "$root" "$file" "out/$(basename "$file")"
	# The C library loads it by name when a thread is cancelled, which ldd does not see.
	library=$(gcc -print-file-name=libgcc_s.so.1 2>/dev/null) && [ -e "$library" ] || return 0
	mkdir -p "$root/lib" && cp -L "$library" "$root/lib/"
}

lab_add_module() {
	local root=$1 folder=$2 path=$3 release needed
	release=$(basename "$folder")
	[ ! -e "$root/lib/modules/$release/$path" ] || return 0
	mkdir -p "$root/lib/modules/$release/$(dirname "$path")"
	cp "$folder/lib/modules/$release/$path" "$root/lib/modules/$release/$path"
	needed=$(grep "^$path:" "$folder/lib/modules/$release/modules.dep")
	echo "$needed" >>"$root/lib/modules/$release/modules.dep"
	for path in ${needed#*:}; do
		lab_add_module "$root" "$folder" "$path"
	done
}

lab_add_modules() {
	local root=$1 folder=$2 module path wanted=$lab_modules
	[ "$clock" = virtual ] || wanted+=" $lab_modules_host"
	[ -z "$root_files" ] || wanted+=" $lab_modules_files"
	for module in $wanted; do
		path=$(grep -m1 "/$module.ko:" "$folder/lib/modules/$(basename "$folder")/modules.dep" | cut -d: -f1) || true
		if [ -n "$path" ]; then
			lab_add_module "$root" "$folder" "$path"
			echo "$module" >>"$root/modules"
		fi
	done
}

# The words as one line that a shell reads back unchanged.
lab_quote() {
	local word
	for word in "$@"; do
		printf "'%s' " "$(printf '%s' "$word" | sed "s/'/'\\\\''/g")"
	done
	echo
}

# A file system for the machine's "/", small itself, whose sparse files fill a page cache of $root_files: reading a hole
# costs no disk, so no completion of the host's decides when it is done.
lab_make_disk() {
	local image=$1/root/disk bytes place i
	bytes=$((($(numfmt --from=iec "$root_files") / 16 + 4095) / 4096 * 4096))
	# The image is part of what decides the times: nothing of the host goes in, no time and no identity.
	export E2FSPROGS_FAKE_TIME=1
	local PATH=$PATH:/usr/sbin:/sbin
	mke2fs -q -F -t ext2 -b 4096 -I 128 -m 0 -N 256 -U 5e1a7e5c-0000-4000-8000-000000000001 \
		-E hash_seed=5e1a7e5c-0000-4000-8000-000000000002,root_owner=0:0 "$image" 4M >/dev/null
	{
		for place in bin dev etc lab lib lib64 out proc run sys tmp usr var files; do
			echo "mkdir $place"
		done
		for i in $(seq 16); do
			printf 'write /dev/null files/%s\nset_inode_field files/%s size %s\n' "$i" "$i" "$bytes"
		done
	} | debugfs -w -f - "$image" >/dev/null 2>&1
	debugfs -R "stat files/16" "$image" 2>/dev/null | grep "Size: $bytes\$" >/dev/null ||
		die 1 "debugfs did not make the files of --root-files $root_files"
	unset E2FSPROGS_FAKE_TIME
}

lab_make_initramfs() {
	local work=$1 root=$1/root program file
	shift
	mkdir -p "$root"/{bin,dev,proc,sys,tmp,run,out,etc,usr/local/bin,var/tmp,lab}
	cp "$(command -v busybox)" "$root/bin/busybox"
	for program in $(busybox --list); do
		[ "$program" = busybox ] || ln -sf busybox "$root/bin/$program"
	done
	echo 'root:x:0:0:root:/tmp:/bin/sh' >"$root/etc/passwd"
	echo 'root:x:0:' >"$root/etc/group"
	cp "$top/lab/init" "$root/init"
	for file in "$build"/benchmarks/* "$build"/tools/* "$build"/tests/backends/test_drm_dumb \
		"$build"/tests/undo_test_group; do
		[ -f "$file" ] && [ -x "$file" ] && lab_add_program "$root" "$file" "usr/local/bin/$(basename "$file")"
	done
	[ -z "$kernel_folder" ] || lab_add_modules "$root" "$kernel_folder"
	for file in "${files[@]}"; do
		lab_add_file "$root" "$file"
	done
	# A record that "syslat run" asks for is written in the machine and brought back.
	[ -z "${SYSLATENCY_RECORD:-}" ] || echo 'export SYSLATENCY_RECORD=/lab/record' >"$root/command"
	lab_quote "$@" >>"$root/command"
	[ -z "$root_files" ] || lab_make_disk "$work"
	[ -z "$padding" ] || head -c "$padding" /dev/zero >"$root/padding"
	# The same bytes each time: virtual time depends on them.
	find "$root" -exec touch -h -d @0 {} +
	(cd "$root" && find . | LC_ALL=C sort | cpio -o -H newc --quiet --reproducible -R 0:0 | gzip -1 -n) >"$work/initramfs"
}
