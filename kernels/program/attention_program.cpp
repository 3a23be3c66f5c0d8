// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/attention_program.h"

#include <cstdlib>
#include <vector>

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

/// Sums and differences of the position and constants. Positions lie below 2^30, so int32 does not wrap while offsets
/// do too.
std::optional<LinearBound> linearBound(const Program& bound) {
    std::vector<LinearBound> values;
    values.reserve(bound.nodes.size());
    for (const ProgramNode& node : bound.nodes) {
        const auto arg = [&](std::size_t i) { return values[static_cast<std::size_t>(node.args.at(i))]; };
        const bool integer = node.type == ProgramType::Int32 || node.type == ProgramType::Int64;
        if (integer && node.op == ProgramOp::Query) {
            values.push_back({1, 0});
        } else if (integer && node.op == ProgramOp::Constant) {
            values.push_back({0, node.integer});
        } else if (node.type == ProgramType::Int64 && node.op == ProgramOp::Cast) {
            values.push_back(arg(0));
        } else if (integer && (node.op == ProgramOp::Add || node.op == ProgramOp::Sub)) {
            const std::int64_t sign = node.op == ProgramOp::Add ? 1 : -1;
            values.push_back({arg(0).slope + sign * arg(1).slope, arg(0).offset + sign * arg(1).offset});
        } else {
            return std::nullopt;
        }
        constexpr std::int64_t kSafe = std::int64_t{1} << 30;
        const LinearBound& made = values.back();
        if (node.type == ProgramType::Int32 && (std::abs(made.slope) > 1 || std::abs(made.offset) > kSafe)) {
            return std::nullopt;
        }
    }
    return values[static_cast<std::size_t>(bound.result)];
}

} // namespace

ProgramAnalysis::ProgramAnalysis(const Program& program) : key(programKey(program)) {
    if (!program.isMask()) {
        return;
    }
    rows = hullRows(program, exact);
    byHead = readsHead(program);
    perHead = readsHead(rows.low) || readsHead(rows.high);
    low = linearBound(rows.low);
    high = linearBound(rows.high);
    if (!rows.lowUnbounded) {
        if (const std::optional<std::int64_t> at = distance(rows.low)) {
            keysBefore = -*at;
        }
    }
    if (!rows.highUnbounded) {
        keysAfter = distance(rows.high);
    }
}

AnalysisOf::AnalysisOf(const BoundProgram& bound) : analysis_(bound.analysis) {
    if (analysis_ == nullptr) {
        analysis_ = &own_.emplace(*bound.program);
    }
}

} // namespace vitrine::kernels
