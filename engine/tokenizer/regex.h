// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A compiled regular expression with Oniguruma's meaning, run by PCRE2 (UTF, Unicode properties, JIT, bounded work).

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vitrine::engine {

/// Immutable after construction; any number of threads may search with one object.
class Regex {
public:
    /// `where` ("FILE: FIELD") begins every message. Throws BadInput for a broken pattern, Unsupported for one that
    /// needs what PCRE2 lacks.
    Regex(std::string_view onigurumaPattern, std::string where);
    ~Regex();
    Regex(Regex&&) noexcept;
    Regex& operator=(Regex&&) noexcept;
    Regex(const Regex&) = delete; // compiled code has one owner
    Regex& operator=(const Regex&) = delete;

    /// All matches from left to right as [begin, end) bytes of valid UTF-8. An empty match directly after another match
    /// is skipped. Throws BadInput when the pattern needs more than a bounded number of steps on this text.
    std::vector<std::pair<std::size_t, std::size_t>> findAll(std::string_view text) const;

private:
    struct Code;
    std::unique_ptr<Code> code_;
    std::string where_;
};

} // namespace vitrine::engine
