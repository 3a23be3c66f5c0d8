// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace vitrine::engine {

/// What is said once for a file of rows.
class RowNotes {
public:
    /// A key that changes nothing, as it is shown.
    void unused(std::string key);
    /// An answer of the row at `place` has nothing that could be trained.
    void withoutContent(const std::string& place);
    /// Logs a warning for each kind of note.
    void say(const std::string& file) const;

private:
    std::set<std::string> unused_; ///< bounded
    std::int64_t empty_ = 0;
    std::string firstEmpty_;
};

} // namespace vitrine::engine
