// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A score or mask program as ops take it: bound to the tensors that it captures, together with the results of an
// analysis that is made once.

#include <memory>
#include <optional>
#include <string>

#include "kernels/program/interval_analysis.h"
#include "kernels/program/program.h"

namespace vitrine::kernels {

/// A bound of a row's keys that follows from its position alone: slope * q_idx + offset.
struct LinearBound {
    std::int64_t slope = 0, offset = 0;
    std::int64_t at(std::int64_t query) const { return slope * query + offset; }
};

/// The results of analysis that hold for all contents of the captured tensors.
struct ProgramAnalysis {
    explicit ProgramAnalysis(const Program& program);

    std::string key;      ///< programKey
    IntervalRows rows;    ///< of a mask: every key that a row sees lies inside (hullRows)
    bool exact = false;   ///< and it sees all of them: the closed form
    bool perHead = false; ///< the ends depend on the head
    bool byHead = false;  ///< the mask does
    /// The ends of a row's interval, where they are linear in its position. Then the programs of the ends need not run.
    std::optional<LinearBound> low, high;
    /// How many keys a row far from the start may see before and after its own position. None
    /// where there is no such number, or where it depends on captured tensors.
    std::optional<std::int64_t> keysBefore, keysAfter;
};

/// A program and what it captures. The program (and the analysis) outlive the op's run.
struct BoundProgram {
    const Program* program = nullptr; ///< null: none
    CaptureBinding captures;
    const ProgramAnalysis* analysis =
        nullptr; ///< of `program`, when its owner keeps them; null: found anew at each use

    bool empty() const { return program == nullptr; }
};

/// A program with its analysis, for owners whose ops run often (the layers of a model).
struct KnownProgram {
    explicit KnownProgram(Program from) : program(std::move(from)), analysis(program) {}

    BoundProgram bound(CaptureBinding captures = {}) const { return {&program, std::move(captures), &analysis}; }

    Program program;
    ProgramAnalysis analysis;
};

/// The analysis of a bound program: that of its owner, or a new one.
class AnalysisOf {
public:
    explicit AnalysisOf(const BoundProgram& bound);
    ~AnalysisOf() = default;
    AnalysisOf(const AnalysisOf&) = delete; // points at its own
    AnalysisOf& operator=(const AnalysisOf&) = delete;
    const ProgramAnalysis& operator*() const { return *analysis_; }
    const ProgramAnalysis* operator->() const { return analysis_; }

private:
    std::optional<ProgramAnalysis> own_;
    const ProgramAnalysis* analysis_;
};

} // namespace vitrine::kernels
