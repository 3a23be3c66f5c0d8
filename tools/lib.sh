# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
# What the scripts of this folder share; source it, it runs nothing by itself.
# After sourcing, the current folder is the root of the tree, $root. Sourcing it comes first in a script, because it
# remembers the script's file and the folder that the script was called from.
set -euo pipefail
script=$(realpath -- "$0")
origin=$PWD
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

# Packages of Debian 12 (and relatives) by name.
build_packages=(
    g++ cmake ninja-build ccache mold pkg-config git ca-certificates
    libgtest-dev libgmock-dev libbenchmark-dev
    nlohmann-json3-dev libfmt-dev libspdlog-dev libcli11-dev
    libzstd-dev libsqlite3-dev libpcre2-dev libutf8proc-dev
    qt6-base-dev libqt6opengl6-dev qt6-charts-dev qt6-svg-dev libgl-dev
    fonts-noto-core fonts-noto-mono
)
lint_packages=(clang-format-19 clang-tidy-19)

# Compiled objects are shared between checkouts of this tree, wherever they lie.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=true
# What ccache needs to know precompiled headers by their contents.
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime

say() { printf '%s\n' "$*"; }

# fail SENTENCE: the last line of a script that could not do its work.
fail() {
    printf 'vitrine: error: %s\n' "$*" >&2
    exit 1
}

# misuse SENTENCE: the last line of a script that was called wrongly.
misuse() {
    printf 'vitrine: error: %s: %s\n' "${script#"$root"/}" "$*" >&2
    exit 2
}

# usage: the comment at the head of the script, without the licence.
usage() {
    sed -n '/^#!/d; /^# SPDX/d; /^#/!q; s/^# \{0,1\}//p' "$script"
}

# take_arguments LEAST MOST [OPTION...] -- ARGUMENT...: reads the script's arguments. Options come first; each that was
# given sets the variable of its name to true, the others are false: $verbose for --verbose. The array $operands gets
# what follows, from LEAST to MOST of them. An option that ends in "...", like --quick..., takes all that follows it.
# --help and -h print the usage.
take_arguments() {
    local least=$1 most=$2 option known=(--help -h)
    shift 2
    while [[ $1 != -- ]]; do
        known+=("${1%...}")
        [[ $1 != *... ]] || local rest=$1
        declare -g "$(option_variable "${1%...}")=false"
        shift
    done
    shift
    while [[ ${1:-} == -* ]]; do
        option=$1
        case "$option" in
        -h | --help)
            usage
            exit 0
            ;;
        esac
        [[ " ${known[*]} " == *" $option "* ]] || misuse "unknown option $option; there are: ${known[*]}"
        declare -g "$(option_variable "$option")=true"
        shift
        if [[ ${rest:-} == "$option..." ]]; then
            most=$#
            break
        fi
    done
    operands=("$@")
    (($# >= least)) || misuse "too few arguments; --help says what it takes"
    (($# <= most)) || misuse "${operands[most]}: one argument too many; --help says what it takes"
}

# option_variable --OPTION: the name of its variable.
option_variable() {
    local name=${1#--}
    say "${name//-/_}"
}

# from_origin PATH: the absolute path of what the caller of the script named.
from_origin() {
    (cd -- "$origin" && realpath -m -- "$1")
}

# stage NAME COMMAND...: runs the command under a headline and prints how long it took. Its status is the command's.
stage() {
    local name=$1 begin=$SECONDS status=0
    shift
    say "== $name"
    "$@" || status=$?
    if ((status == 0)); then
        say "== $name: done in $((SECONDS - begin)) s"
    else
        say "== $name: FAILED after $((SECONDS - begin)) s (status $status)"
    fi
    return "$status"
}

# missing_packages NAME...: those of them that are not installed.
missing_packages() {
    local package
    for package in "$@"; do
        [[ $(dpkg-query --show --showformat='${db:Status-Abbrev}' "$package" 2>/dev/null) == ii* ]] || say "$package"
    done
}

# ensure_packages NAME...: installs what is missing, as root or through sudo; asks the network nothing when nothing is.
ensure_packages() {
    local missing=() as_root=()
    command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
        fail "this is no Debian or Ubuntu system; install the packages named in tools/lib.sh by other means, then run tools/test --quick"
    mapfile -t missing < <(missing_packages "$@")
    if ((${#missing[@]} == 0)); then
        say "All $# packages are there."
        return 0
    fi
    say "Missing ${#missing[@]} of $# packages: ${missing[*]}"
    if ((EUID != 0)); then
        command -v sudo >/dev/null ||
            fail "installing packages needs root; run as root: apt-get install ${missing[*]}"
        as_root=(sudo)
    fi
    # A broken third-party source must not stop us: the install below shows whether the lists suffice.
    "${as_root[@]}" apt-get update || say "apt-get update had errors; going on with the package lists that there are"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "${missing[@]}" ||
        fail "apt-get could not install ${missing[*]}; its reason stands above (network, package sources or another apt running)"
}

# configure PRESET: makes or refreshes build/PRESET.
configure() {
    cmake --preset "$1"
}

# build PRESET [TARGET...]: on all cores.
build() {
    local preset=$1
    shift
    cmake --build "build/$preset" --parallel "$(nproc)" ${1:+--target "$@"}
}

# slowest FOLDER [N]: the N (10) files of a build that took longest to compile when they were compiled last.
slowest() {
    local folder=$1 count=${2:-10}
    say "The slowest files of $folder, in seconds:"
    # Columns of Ninja's log: begin and end in ms, time stamp, output, hash of the command. The last line of a file counts.
    awk -F '\t' '$4 ~ /[.](o|gch)$/ { time[$4] = ($2 - $1) / 1000 } END { for (f in time) printf "%8.1f  %s\n", time[f], f }' \
        "$folder/.ninja_log" | sort -rn | sed -E "$((count + 1)),\$d; s#CMakeFiles/[^/]+[.]dir/##"
}

# run_tests FOLDER [CTEST ARGS]: the tests of a build. A few that fail beside others get a second run, alone: a machine that
# stood still for a moment must not refuse a change. A sanitizer's report counts whenever it comes, and who needed the
# second run is named.
run_tests() {
    local folder=$1 most=5 status=0 log names
    shift
    log=$folder/run_tests.log
    ctest --test-dir "$folder" -j2 --output-on-failure --no-tests=error "$@" 2>&1 | tee "$log" || status=$?
    ((status != 0)) || return 0
    local failed=$folder/Testing/Temporary/LastTestsFailed.log
    [[ -s $failed ]] && (($(wc -l <"$failed") <= most)) || return "$status"
    ! grep -qE 'ERROR: (Address|Leak)Sanitizer|WARNING: ThreadSanitizer|runtime error:' "$log" || return "$status"
    say "Failed beside others, run again alone: $(cut -d: -f2- "$failed" | paste -sd ' ')"
    # By name: --rerun-failed goes by numbers, which other tests have where the first run left some out.
    names=$(cut -d: -f2- "$failed" | sed 's/[][\\.*^$+?(){}|]/\\&/g' | paste -sd '|')
    ctest --test-dir "$folder" --output-on-failure --no-tests=error "$@" -R "^($names)\$"
}

# cuda_note: says what to install when the build has no CUDA context.
cuda_note() {
    if grep -q '^VITRINE_CUDA_INCLUDE:PATH=.*NOTFOUND' build/full/CMakeCache.txt 2>/dev/null; then
        say "Built without the CUDA context (CPU and Meta work): no cuda.h was found. NVIDIA's package cuda-toolkit, or"
        say "Debian's nvidia-cuda-dev (component non-free), adds the headers; then run this again."
    fi
}
