// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Runs a program on the CPU over stretches of keys. It is the reference for every other form. Nodes that do not depend
// on keys or scores are computed once for a row, the others in vectors of kInterpreterWidth. C is float or double. An
// Interpreter belongs to one thread; making one costs a pass over the program.

#include <memory>

#include "kernels/program/program.h"

namespace vitrine::kernels {

inline constexpr int kInterpreterWidth = 256;

/// Where a row lies.
struct ProgramRow {
    std::int64_t batch = 0;
    std::int64_t head = 0;
    std::int64_t query = 0;
};

template <class C> class Interpreter {
public:
    /// Keeps pointers to both. `roots`: the nodes whose values are wanted; empty: the program's result.
    Interpreter(const Program& program, const CaptureBinding& binding, std::vector<std::int32_t> roots = {});
    ~Interpreter();
    Interpreter(Interpreter&&) noexcept;
    Interpreter& operator=(Interpreter&&) noexcept;
    Interpreter(const Interpreter&) = delete; // owns the values of a run
    Interpreter& operator=(const Interpreter&) = delete;

    /// Evaluates keys [key, key + count), count <= kInterpreterWidth. `scores` (count values) may be null when the
    /// program does not use them, `upstream` likewise.
    void run(const ProgramRow& row, std::int64_t key, int count, const C* scores, const C* upstream = nullptr);

    /// Values of the last run. Of a root (index into roots) as its type; a value that is the same for the whole row is
    /// repeated. Valid until the next run.
    const C* floats(int root = 0) const;
    const std::int64_t* integers(int root = 0) const;
    const std::uint8_t* booleans(int root = 0) const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

extern template class Interpreter<float>;
extern template class Interpreter<double>;

/// A mask at one element, and which sub-expressions made it so: the conjuncts (or disjuncts) of the result with their
/// own values, for the Mask Lab's "under the pointer".
struct ExplainedNode {
    std::int32_t node = -1;
    std::string text;  ///< "q_idx >= kv_idx"
    std::string value; ///< "False", "3", "0.25"
    ProgramSpan span;
    int depth = 0;        ///< 0: the result; its parts deeper
    bool decides = false; ///< without this part the result would be another
};
std::vector<ExplainedNode> explain(const Program& program, const CaptureBinding& binding, const ProgramRow& row,
                                   std::int64_t key, double score);

} // namespace vitrine::kernels
