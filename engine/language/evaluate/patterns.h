// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Patterns of "match" over constants.

#include <string_view>
#include <utility>
#include <vector>

#include "engine/language/evaluate/expressions.h"

namespace vitrine::engine {

class PyPatterns {
public:
    /// What a pattern gives names to, in the order in which it does.
    using Bound = std::vector<std::pair<std::string_view, PyValue>>;

    PyPatterns(PyServices& services, PyExpressions& expressions) : services_(services), expressions_(expressions) {}

    bool matches(const PyPattern& pattern, PyValue subject, Bound& names);

private:
    bool matchesSequence(const PyPattern& pattern, PyValue subject, Bound& names);

    PyServices& services_;
    PyExpressions& expressions_;
};

} // namespace vitrine::engine
