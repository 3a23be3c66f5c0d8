// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Builds programs: promotes types as PyTorch does, folds constants, merges equal nodes, simplifies what is certain
// (x + 0, x & True, select(c, x, x), not not x). Throws BadInput, without a place (the caller knows it), when types do
// not fit or kMaxProgramNodes would be passed. Not thread-safe.

#include <memory>
#include <optional>
#include <span>

#include "kernels/program/program.h"

namespace vitrine::kernels {

class ProgramBuilder {
public:
    using Value = std::int32_t; ///< a node

    ProgramBuilder();
    ~ProgramBuilder();
    ProgramBuilder(ProgramBuilder&&) noexcept;
    ProgramBuilder& operator=(ProgramBuilder&&) noexcept;
    ProgramBuilder(const ProgramBuilder&) = delete; // values belong to one builder
    ProgramBuilder& operator=(const ProgramBuilder&) = delete;

    /// Text that later spans point into; returns its index.
    std::int32_t addSource(std::string text);
    /// Nodes made from here on carry this span.
    void setSpan(ProgramSpan span);

    Value input(ProgramOp op); ///< Score, Batch, Head, Query, Key, Upstream
    Value constant(bool value);
    /// A Python number: `weak` ones take the other operand's type (PyTorch's rule for scalars); a tensor's value is not
    /// weak.
    Value constant(std::int64_t value, bool weak = true);
    Value constant(double value, bool weak = true);
    /// The capture of that name, added at its first use; the same name must have the same type and rank again.
    std::int32_t capture(const ProgramCapture& capture);
    Value scalar(std::int32_t capture);
    Value load(std::int32_t capture, std::span<const Value> indices);

    /// Add .. Pow, Div, Lt, Le, Eq, Ne, And, Or, Xor, shifts: promotes, then makes the node. Gt and Ge: swap the args.
    Value binary(ProgramOp op, Value left, Value right);
    Value unary(ProgramOp op, Value value); ///< Neg, Abs, Sign, Exp .. Trunc, Not; integers become Float where needed
    Value select(Value condition, Value ifTrue, Value ifFalse);
    Value cast(ProgramType type, Value value);

    /// Copies `program`'s result into this builder with `inputs` standing for its inputs where given.
    struct Substitution {
        ProgramOp op;
        Value value;
    };
    Value inlined(const Program& program, std::span<const Substitution> inputs = {});

    ProgramType type(Value value) const;
    bool isWeak(Value value) const;
    std::optional<bool> boolean(Value value) const;         ///< when constant
    std::optional<std::int64_t> integer(Value value) const; ///< when a constant integer
    std::optional<double> real(Value value) const;          ///< when a constant number

    /// The program of one result (or of several: `results` receives their nodes in it), without nodes and captures that
    /// nothing uses.
    Program finish(Value result) const;
    Program finish(std::span<const Value> roots, std::vector<std::int32_t>& results) const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// The programs that the models use, made through the builder. `window` keys including the row's own; 0: none.
Program causalMask();
Program slidingWindowMask(std::int64_t window);
Program softCapScore(double cap);
Program andMasks(const Program& a, const Program& b);
Program orMasks(const Program& a, const Program& b);
/// a and not b: what only A allows.
Program maskDifference(const Program& a, const Program& b);

} // namespace vitrine::kernels
