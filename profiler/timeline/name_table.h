// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The texts of a run by their ids. Immutable once shared.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace vitrine::profiler {

class NameTable {
public:
    using Texts = std::unordered_map<std::uint32_t, std::string>;

    explicit NameTable(std::shared_ptr<const Texts> texts = std::make_shared<const Texts>())
        : texts_(std::move(texts)) {}

    /// Empty for an id that the run does not have.
    std::string_view text(std::uint32_t name) const {
        const auto found = texts_->find(name);
        return found == texts_->end() ? std::string_view() : std::string_view(found->second);
    }

private:
    std::shared_ptr<const Texts> texts_;
};

} // namespace vitrine::profiler
