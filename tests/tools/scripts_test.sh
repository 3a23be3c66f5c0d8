# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
# Runs every script of tools/ with every option that its --help names:  bash scripts_test.sh ROOT
# The scripts run in a scratch tree, where programs that only say what they were called with stand for those that build,
# install or need a device. A script or an option without a case in this file is a failure.
set -uo pipefail
root=$1
scratch=$(realpath -- "$(mktemp -d)")
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/tree
out=$scratch/out
err=$scratch/err
failures=0

problem() {
    printf 'FAILED: %s\n' "$*" >&2
    failures=$((failures + 1))
}

# expect STATUS COMMAND...: runs the command in the scratch tree; its output is in $out and $err.
expect() {
    local wanted=$1 status=0
    shift
    (cd "$tree" && "$@") >"$out" 2>"$err" </dev/null || status=$?
    ((status == wanted)) || {
        problem "$*: ended with $status, not $wanted"
        tail -n 5 "$out" "$err" >&2
    }
}

# says FILE TEXT WHAT: the file has a line with the text.
says() {
    grep -qF -- "$2" "$1" || {
        problem "$3: does not say \"$2\" but:"
        tail -n 20 "$1" >&2
    }
}

# program PATH BODY: a program of the scratch tree.
program() {
    mkdir -p "$(dirname "$1")"
    printf '#!/usr/bin/env bash\n%s\n' "$2" >"$1"
    chmod +x "$1"
}

# The tree: the scripts as they are, and a built folder.
mkdir -p "$tree"/{tests/fixtures/llama,resources/{device-profiles,kernel-packs,mods,synthetic},build/alone} \
    "$tree"/build/full/{app,tests/sanitize/lib64}
cp -r "$root/tools" "$tree/tools"
for name in cmake apt-get clang-format-19 clang-tidy-19 compute-sanitizer; do
    program "$scratch/bin/$name" 'echo "${0##*/} $*"'
done
program "$scratch/bin/dpkg-query" 'echo ii'
program "$scratch/bin/ctest" 'echo "ctest $*"; echo "100% tests passed, 0 tests failed out of 3"'
# The rehearsal of the demo runs out of memory, which is status 3.
program "$tree/build/full/app/vitrine" 'echo "vitrine $*"; [[ $* != *t4* ]] || exit 3'
program "$tree/build/full/app/vitrine-gui" 'echo "vitrine-gui $*"'
touch "$tree/tests/fixtures/llama/config.json" "$tree/build/full/tests/sanitize/lib64/libcublasLt.so.13" \
    "$tree/build/full/build.ninja"
# More than a pipe holds: whoever stops reading early ends the writer.
awk 'BEGIN { for (i = 1; i <= 5000; ++i) printf "0\t%d\t0\tengine/CMakeFiles/vitrine_engine.dir/a_folder/source_%d.cpp.o\tff\n", i, i }' \
    >"$tree/build/full/.ninja_log"
printf 'int a;\n' >"$tree/a.cpp"
printf '[{"file": "%s/a.cpp"}]\n' "$tree" >"$tree/build/alone/compile_commands.json"
printf 'build\n' >"$tree/.gitignore"
export PATH=$scratch/bin:$PATH GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
unset DISPLAY WAYLAND_DISPLAY VITRINE_LINT_BASE
git -C "$tree" init --quiet
for message in first second; do
    printf '// %s\n' "$message" >>"$tree/a.cpp"
    git -C "$tree" add a.cpp && git -C "$tree" commit --quiet --message "$message"
done

# One function for each script; a case for each option that it documents. ran OPTION... is called in it.
declare -A done_options
ran() { done_options[$*]=1; }

script_demo() {
    expect 0 tools/demo
    says "$out" "vitrine-gui demo/demo.vitrine --render demo/views" demo
    says "$tree/demo/vitrish.json" "--data tools/demo-data/vitrish.jsonl" demo
    says "$out" "0 of 3 phrases are right" demo # the stand-in answers with its own command line
    DISPLAY=:0 expect 0 tools/demo
    says "$out" "Opening demo/demo.vitrine." "demo on a display"
    DISPLAY=:0 expect 0 tools/demo --render
    says "$out" "The pictures are in" "demo --render"
    ran --render
    expect 0 tools/demo --verbose
    says "$out" "     5.0  engine/a_folder/source_5000.cpp.o" "demo --verbose"
    (($(grep -c source_ "$out") == 10)) || problem "demo --verbose: not ten slowest files"
    says "$out" "The pictures are in" "demo --verbose"
    ran --verbose
}

script_test() {
    expect 0 tools/test
    says "$out" "0 tests failed" test
    expect 0 tools/test --verbose
    says "$out" "source_5000.cpp.o" "test --verbose"
    says "$out" "0 tests failed" "test --verbose"
    ran --verbose
    expect 0 tools/test --quick -L base
    says "$out" "-L base" "test --quick"
    ran --quick
    expect 2 tools/test -L base
}

script_setup() {
    expect 0 tools/setup
    expect 0 tools/setup --lint
    ran --lint
    expect 2 tools/setup everything
}

script_lint() {
    expect 0 tools/lint
    says "$out" "clang-tidy-19 -p build/alone" lint
    expect 0 tools/lint HEAD
    says "$out" "0 sources changed" "lint HEAD"
    expect 0 tools/lint --fix
    says "$out" "clang-format-19 -i a.cpp" "lint --fix"
    ran --fix
    expect 2 tools/lint no-such-commit
}

script_header_costs() {
    # Two objects, the second with a header that the first has not.
    printf '0\t1500\t0\ta.o\tff\n0\t2000\t0\tb.o\tff\n' >"$tree/build/alone/.ninja_log"
    program "$scratch/bin/ninja" 'printf "a.o: #deps 1, deps mtime 1 (VALID)\n    ../../base/x.h\n\nb.o: #deps 2, deps mtime 1 (VALID)\n    ../../base/x.h\n    '"$tree"'/ui/y.h\n"'
    expect 0 tools/header-costs build/alone
    says "$out" "       2      3.5  base/x.h" header-costs
    says "$out" "       1      2.0  ui/y.h" header-costs
    expect 0 tools/header-costs build/alone 1
    (($(wc -l <"$out") == 2)) || problem "header-costs: not one row"
    expect 2 tools/header-costs build/alone many
    expect 2 tools/header-costs build/nowhere
}

script_gpu_bundle() {
    local file
    # A program with a library beyond glibc, which can tell what it was started with.
    for file in app/vitrine tests/gpu_tests; do
        cp "$(command -v bash)" "$tree/build/full/$file"
    done
    mkdir -p "$scratch/elsewhere"
    expect 2 tools/gpu-bundle "$scratch/bundle.tar.gz" build/full/tests/no_tests
    expect 2 tools/gpu-bundle "$scratch/bundle.tar.gz" build/full/tests/gpu_tests -- no-such-file
    (cd "$tree/build" && ../tools/gpu-bundle ../../bundle.tar.gz full/tests/gpu_tests -- a.cpp) >"$out" 2>"$err" ||
        problem "gpu-bundle from another folder: $(tail -n 1 "$err")"
    tar -C "$scratch/elsewhere" -xzf "$scratch/bundle.tar.gz" || return
    for file in a.cpp bin/gpu_tests bin/vitrine tests/fixtures/llama/config.json tools/gpu-sanitize tools/lib.sh \
        share/vitrine/mods sanitize/lib64/libcublasLt.so.13; do
        [[ -e $scratch/elsewhere/$file ]] || problem "gpu-bundle: $file is missing"
    done
    expect 0 "$scratch/elsewhere/run" gpu_tests -c 'echo "$VITRINE_FIXTURES $VITRINE_RESOURCES"'
    says "$out" "$scratch/elsewhere/tests/fixtures $scratch/elsewhere/resources" "run of a bundle"
}

# In the bundle that script_gpu_bundle has made.
script_gpu_sanitize() {
    local tool
    for tool in memcheck racecheck initcheck; do
        expect 0 "$scratch/elsewhere/tools/gpu-sanitize" "$scratch/elsewhere" "$tool"
        says "$out" "--tool $tool" "gpu-sanitize $tool"
        says "$out" "$scratch/elsewhere/bin/gpu_tests --gtest_filter=-CudaDeathTest" "gpu-sanitize $tool"
    done
    (cd "$scratch/elsewhere" && tools/gpu-sanitize . memcheck -Slow.*) >"$out" 2>"$err" ||
        problem "gpu-sanitize with a filter: $(tail -n 1 "$err")"
    says "$out" "--gtest_filter=-Slow.*" "gpu-sanitize with a filter"
    expect 2 tools/gpu-sanitize "$scratch/elsewhere" nocheck
    expect 2 tools/gpu-sanitize "$scratch" memcheck
}

# Its work needs a package of PyPI.
script_demo_model_make_tokenizer() {
    expect 2 tools/demo-model/make-tokenizer
    expect 2 tools/demo-model/make-tokenizer one two three
}

script_demo_model_make_corpus() {
    expect 0 tools/demo-model/make-corpus --rows 200 --seed 3 "$scratch/one.jsonl"
    expect 0 tools/demo-model/make-corpus --rows 200 --seed 3 "$scratch/two.jsonl"
    cmp -s "$scratch"/{one,two}.jsonl || problem "make-corpus: the same seed gives another file"
    (($(wc -l <"$scratch/one.jsonl") == 200)) || problem "make-corpus: --rows 200 gives another number of rows"
    ran --rows
    expect 0 tools/demo-model/make-corpus --rows 2000 --seed 4 --plain "$scratch/texts.txt"
    (($(wc -l <"$scratch/texts.txt") == 4000)) || problem "make-corpus: --plain gives no question and answer for each row"
    ! grep -qxFf "$root/tools/demo-model/prompts.txt" "$scratch/texts.txt" || problem "make-corpus: asks what prompts.txt asks"
    expect 0 tools/demo-model/make-corpus --rows 90 --seed 3 --talk "$scratch/talk.txt"
    cmp -s "$scratch/talk.txt" "$root/resources/models/vitrine-demo/precision.txt" || problem "make-corpus: --talk does not give the demo model's precision.txt"
    expect 2 tools/demo-model/make-corpus
    expect 2 tools/demo-model/make-corpus --rows 0 "$scratch/one.jsonl"
    expect 2 tools/demo-model/make-corpus --seed x "$scratch/one.jsonl"
}

# Training takes minutes on a GPU.
script_demo_model_train() {
    expect 2 tools/demo-model/train
    expect 2 tools/demo-model/train everything "$scratch/made"
    expect 2 tools/demo-model/train weights "$scratch/made" long
    expect 1 tools/demo-model/train weights "$scratch/made"
    says "$err" "corpus.jsonl: is missing" "train without a corpus"
    ROWS=20 expect 0 tools/demo-model/train corpus "$scratch/made"
    (($(wc -l <"$scratch/made/corpus.jsonl") == 20)) || problem "train corpus: ROWS=20 gives another number of rows"
}

script_demo_model_ask() {
    expect 0 tools/demo-model/ask
    says "$out" "> What is 38 + 47?" ask
    says "$out" "--model resources/models/vitrine-demo --backend cpu --temperature 0" ask
    expect 1 tools/demo-model/ask resources/models/vitrine-demo no-such-file
    expect 2 tools/demo-model/ask one two three
}

while read -r script; do
    name=${script#tools/}
    for option in --help -h; do
        expect 0 "$script" "$option"
        says "$out" "  $script" "$name $option"
        [[ ! -s $err ]] || problem "$name $option: writes to standard error"
        ! grep -q SPDX "$out" || problem "$name $option: prints the licence"
    done
    mapfile -t options < <(sed -nE "s#^  $script (--[a-z-]+).*#\1#p" "$out" | sort -u)

    expect 2 "$script" --no-such-option
    [[ ! -s $out ]] || problem "$name: reports an unknown option on standard output"
    (($(wc -l <"$err") == 1)) || problem "$name: an unknown option takes $(wc -l <"$err") lines, not one"
    for option in --no-such-option --help "${options[@]}"; do
        says "$err" "$option" "$name with an unknown option"
    done

    cases=script_${name//[\/-]/_}
    if ! declare -F "$cases" >/dev/null; then
        problem "$script: this test has no cases for it; write $cases in tests/tools/scripts_test.sh"
        continue
    fi
    done_options=()
    "$cases"
    for option in "${options[@]}"; do
        [[ -n ${done_options[$option]:-} ]] || problem "$script $option: this test has no case for it; write one in $cases"
    done
done < <(cd "$root" && find tools -type f -executable | sort)

((failures == 0)) || {
    printf '%d problems\n' "$failures" >&2
    exit 1
}
echo "All scripts of tools/ do what they say."
