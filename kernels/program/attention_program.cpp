// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/attention_program.h"

#include "kernels/program/interpreter.h"

namespace vitrine::kernels {

namespace {

bool readsHead(const Program& program) {
    return (inputsOf(program)[static_cast<std::size_t>(program.result)] & kOnHead) != 0;
}

bool readsCaptures(const Program& program) {
    return (inputsOf(program)[static_cast<std::size_t>(program.result)] & kOnCaptures) != 0;
}

/// Of a program that reads no captures.
std::int64_t valueAt(const Program& bound, std::int64_t query) {
    const CaptureBinding none;
    Interpreter<double> interpreter(bound, none);
    interpreter.run({0, 0, query}, 0, 1, nullptr);
    return interpreter.integers()[0];
}

/// How far a bound lies from the row's own position, if that is the same for two rows far from the start.
std::optional<std::int64_t> distance(Program bound) {
    if (readsCaptures(bound) || readsHead(bound)) {
        return std::nullopt;
    }
    bound.captures.clear();
    constexpr std::int64_t kFar = std::int64_t{1} << 24;
    const std::int64_t near = valueAt(bound, kFar) - kFar;
    return near == valueAt(bound, 2 * kFar + 1) - (2 * kFar + 1) ? std::optional(near) : std::nullopt;
}

} // namespace

ProgramFacts::ProgramFacts(const Program& program) : key(programKey(program)) {
    if (!program.isMask()) {
        return;
    }
    rows = hullRows(program, exact);
    perHead = readsHead(rows.low) || readsHead(rows.high);
    if (!rows.lowUnbounded) {
        if (const std::optional<std::int64_t> at = distance(rows.low)) {
            behind = -*at;
        }
    }
    if (!rows.highUnbounded) {
        ahead = distance(rows.high);
    }
}

FactsOf::FactsOf(const BoundProgram& bound) : facts_(bound.facts) {
    if (facts_ == nullptr) {
        facts_ = &own_.emplace(*bound.program);
    }
}

} // namespace vitrine::kernels
