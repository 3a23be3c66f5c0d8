// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the parts of one evaluation share: the objects that it made, the program that it builds, the place that it has
// come to, its limits and its notes.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/language/evaluate/options.h"
#include "engine/language/python/parser.h"
#include "engine/language/values/values.h"
#include "kernels/program/program_builder.h"

namespace vitrine::engine {

/// Of the evaluation's own recursion: a level takes less than 2 KiB of the stack.
inline constexpr int kMaxEvaluationDepth = 900;

/// One evaluation, in one thread. `options` must outlive it.
class Evaluation {
public:
    explicit Evaluation(const ProgramOptions& given) : options(given) {}

    const ProgramOptions& options;
    PyHeap heap;
    kernels::ProgramBuilder builder;
    const PyText* text = nullptr;        ///< of what is being evaluated
    PyNamespace* scope = nullptr;        ///< in which names are looked up
    PyRange range;                       ///< of what is being evaluated
    const PyFunction* running = nullptr; ///< the function of the text that is being called
    bool inProgram = false;              ///< the chosen function is being called with symbols
    int noGradient = 0;                  ///< how many "with torch.no_grad()" are open
    bool anyName = false;                ///< exec or globals() was reached: any name may have another value
    int tries = 0;                       ///< how many "try" with a handler are open

    void step() { steps(1); }       ///< throws past kMaxSteps
    void steps(std::int64_t count); ///< throws past kMaxSteps
    bool outOfSteps() const { return steps_ > kMaxSteps; }
    bool gradients() const { return noGradient == 0; }
    /// Once for each text, with the place of what is being evaluated.
    void note(const std::string& what);
    std::vector<std::string>& notes() { return notes_; }
    /// Nodes that are made from here on come from this expression.
    void place(const PyExpr& expr);
    PyError located(const base::BadInput& error, PyRange where) const;
    /// A value that throws `error` where it is read.
    PyPoison* poison(const PyError& error);

private:
    friend class EvaluationDepth;
    std::vector<std::string> notes_;
    std::set<std::string> noted_;
    std::map<const PyText*, std::int32_t> sources_;
    std::int64_t steps_ = 0;
    int depth_ = 0;
};

/// Counts a level of the recursion while it lives. Throws BadInput past kMaxEvaluationDepth.
class EvaluationDepth {
public:
    explicit EvaluationDepth(Evaluation& evaluation);
    ~EvaluationDepth() { --evaluation_.depth_; }
    EvaluationDepth(const EvaluationDepth&) = delete; // counts once
    EvaluationDepth& operator=(const EvaluationDepth&) = delete;

private:
    Evaluation& evaluation_;
};

/// Evaluates in another text and scope while it lives.
class PlaceGuard {
public:
    PlaceGuard(Evaluation& evaluation, const PyText* text, PyNamespace* scope);
    ~PlaceGuard();
    PlaceGuard(const PlaceGuard&) = delete; // restores once
    PlaceGuard& operator=(const PlaceGuard&) = delete;

private:
    Evaluation& evaluation_;
    const PyText* text_;
    PyNamespace* scope_;
    PyRange range_;
};

[[noreturn]] void throwPoison(const PyPoison& poison);

} // namespace vitrine::engine
