# shellcheck shell=bash disable=SC2154
# Sourced by scripts/lab: the lab's kernels, one a variant, from Debian's linux-source.

lab_variants="stock mapping mapping-v7 mlock"
# Built only when it is named: what finds faults of a driver. Pinned pages as in mapping-v7.
lab_debug=debug

# Debian's source with the common patch and our driver, unpacked in the cache: its folder on standard output.
lab_source() {
	local package version folder
	package=$(lab_package linux-source-6.1) || return 1
	version=$(basename "$package" | cut -d_ -f2)
	folder=$cache/source-$version
	if [ ! -e "$folder/ready" ] || ! cmp -s "$folder/ready" "$top/lab/patches/common.patch"; then
		rm -rf "$folder" && mkdir -p "$folder"
		dpkg-deb --fsys-tarfile "$package" | tar -x -C "$folder" ./usr/src/linux-source-6.1.tar.xz
		tar -x -J -f "$folder/usr/src/linux-source-6.1.tar.xz" -C "$folder"
		rm -r "${folder:?}/usr"
		patch -s -p1 -d "$folder/linux-source-6.1" <"$top/lab/patches/common.patch" >&2
		cp "$folder/linux-source-6.1/drivers/gpu/drm/drm_gem.c" "$folder/drm_gem.c"
		cp "$top/lab/patches/common.patch" "$folder/ready"
	fi
	lab_add_driver "$folder/linux-source-6.1"
	echo "$folder"
}

# The driver that speaks i915, which is files and not a patch. What is the same keeps its time, for make.
lab_add_driver() {
	local target=$1/drivers/gpu/drm/i915lab
	diff -r "$top/lab/i915lab" "$target" >/dev/null 2>&1 || { rm -rf "$target" && cp -r "$top/lab/i915lab" "$target"; }
}

# make for the kernel in $1, built in $2, at the lowest priority.
lab_make() {
	local source=$1 objects=$2
	shift 2
	nice -n 19 make -s -C "$source" O="$objects" -j "$(nproc)" "$@" >"$objects.log" 2>&1 ||
		die 1 "the kernel does not build: $(grep -m1 -E 'error|Error' "$objects.log"): see $objects.log"
}

# The configuration files of a variant.
lab_config() {
	echo "$top/lab/kernel.config"
	[ "${1:-}" != debug ] || echo "$top/lab/debug.config"
}

lab_configure() {
	local source=$1 objects=$2 files
	mapfile -t files < <(lab_config "${3:-}")
	mkdir -p "$objects"
	if ! cat "${files[@]}" | cmp -s "$objects/fragment" -; then
		lab_make "$source" "$objects" tinyconfig
		cat "${files[@]}" >>"$objects/.config"
		lab_make "$source" "$objects" olddefconfig
		cat "${files[@]}" >"$objects/fragment"
	fi
}

lab_kernel_needs() {
	local program
	for program in make gcc flex bison bc patch xz; do
		command -v "$program" >/dev/null || die 77 "$program is not installed: scripts/setup --kernel"
	done
	[ -e /usr/include/libelf.h ] || die 77 "libelf-dev is not installed: scripts/setup --kernel"
}

# What a built kernel was made from, so that it is built once.
lab_kernel_key() {
	# mapping-v7 and debug have no patch of their own.
	{
		lab_config "$3" | xargs -d '\n' cat
		cat "$top"/lab/i915lab/* "$1" "$2" 2>/dev/null || true
	} | sha256sum | cut -d' ' -f1
}

lab_build_variant() {
	local variant=$1 folder=$2 source=$2/linux-source-6.1 objects=$2/objects patch key
	[ "$variant" != "$lab_debug" ] || objects=$objects-debug
	patch=$top/lab/patches/variant-$variant.patch
	key=$(lab_kernel_key "$folder/ready" "$patch" "$variant")
	if [ "$(cat "$cache/kernels/$variant.key" 2>/dev/null)" = "$key" ] && [ -e "$cache/kernels/$variant" ]; then
		echo "lab: kernel $variant is built" >&2
		return 0
	fi
	echo "lab: building kernel $variant (log: $objects.log)" >&2
	cp "$folder/drm_gem.c" "$source/drivers/gpu/drm/drm_gem.c"
	# mapping-v7 is what Debian's source has.
	[ ! -e "$patch" ] || patch -s -p1 -d "$source" <"$patch" >&2
	lab_configure "$source" "$objects" "$variant"
	lab_make "$source" "$objects" LOCALVERSION="-$variant" bzImage
	cp "$folder/drm_gem.c" "$source/drivers/gpu/drm/drm_gem.c"
	mkdir -p "$cache/kernels"
	cp "$objects/arch/x86/boot/bzImage" "$cache/kernels/$variant"
	echo "$key" >"$cache/kernels/$variant.key"
}

lab_kernel() {
	local tree="" variant folder
	if [ "${1:-}" = --tree ]; then
		[ $# -eq 3 ] || die 2 "kernel --tree takes a directory and a name for what it builds"
		tree=$(cd "$2" && pwd) || die 2 "there is no directory $2"
		shift 2
	fi
	if [ -n "$tree" ]; then
		lab_kernel_needs
		mkdir -p "$cache/kernels"
		# With the common patch it has a place for the driver.
		! grep -qs i915lab "$tree/drivers/gpu/drm/Kconfig" || lab_add_driver "$tree"
		lab_configure "$tree" "$cache/objects-$1"
		lab_make "$tree" "$cache/objects-$1" LOCALVERSION="-$1" bzImage
		cp "$cache/objects-$1/arch/x86/boot/bzImage" "$cache/kernels/$1"
		return 0
	fi
	# shellcheck disable=SC2086
	[ $# -gt 0 ] || set -- $lab_variants
	for variant in "$@"; do
		case " $lab_variants $lab_debug " in
		*" $variant "*) ;;
		*) die 2 "unknown variant '$variant': $lab_variants, $lab_debug" ;;
		esac
	done
	lab_kernel_needs
	mkdir -p "$cache/kernels"
	folder=$(lab_source) || die 77 "Debian's linux-source-6.1 cannot be had: see $cache/download.log"
	for variant in "$@"; do
		lab_build_variant "$variant" "$folder"
	done
}
