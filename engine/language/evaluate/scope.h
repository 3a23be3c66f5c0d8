// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Guards of the evaluator's state. Private to its sources.

#include "engine/language/evaluate/evaluator.h"

namespace vitrine::engine {

/// Of the evaluator's own recursion: a level takes less than 2 KiB of the stack.
inline constexpr int kMaxEvaluationDepth = 900;

class ModEvaluator::Depth {
public:
    explicit Depth(ModEvaluator& evaluator) : evaluator_(evaluator) {
        if (evaluator_.depth_ >= kMaxEvaluationDepth) {
            fail("expressions, blocks and calls are nested too deeply");
        }
        ++evaluator_.depth_;
    }
    ~Depth() { --evaluator_.depth_; }
    Depth(const Depth&) = delete; // counts once
    Depth& operator=(const Depth&) = delete;

private:
    ModEvaluator& evaluator_;
};

/// Evaluates in another text and scope while it lives.
class ModEvaluator::Inside {
public:
    Inside(ModEvaluator& evaluator, const ModText* text, ModScope* scope)
        : evaluator_(evaluator), text_(evaluator.text_), scope_(evaluator.scope_), range_(evaluator.range_) {
        evaluator.text_ = text;
        evaluator.scope_ = scope;
    }
    ~Inside() {
        evaluator_.text_ = text_;
        evaluator_.scope_ = scope_;
        evaluator_.range_ = range_;
    }
    Inside(const Inside&) = delete; // restores once
    Inside& operator=(const Inside&) = delete;

private:
    ModEvaluator& evaluator_;
    const ModText* text_;
    ModScope* scope_;
    PyRange range_;
};

} // namespace vitrine::engine
