// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace vitrine::engine {

/// What is said once for a file of rows.
class RowNotes {
public:
    /// Whether the model's chat template reads members of this name.
    using Reads = std::function<bool(std::string_view name)>;
    explicit RowNotes(Reads reads = {}) : reads_(std::move(reads)) {}

    bool isRead(std::string_view name) const { return reads_ && reads_(name); }
    /// A key that changes nothing, as it is shown.
    void unused(std::string key);
    /// An answer of the row at `place` has nothing that could be trained.
    void withoutContent(const std::string& place);
    /// Logs a warning for each kind of note.
    void say(const std::string& file) const;

private:
    Reads reads_;
    std::set<std::string> unused_; ///< bounded
    std::int64_t empty_ = 0;
    std::string firstEmpty_;
};

} // namespace vitrine::engine
