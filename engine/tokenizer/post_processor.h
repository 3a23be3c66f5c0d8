// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The "post_processor" of tokenizer.json: which special tokens stand around one encoded text.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/tokenizer/json_field.h"

namespace vitrine::engine {

/// Immutable; safe to use from several threads. Pairs of texts are not supported: a language model has one.
class PostProcessor {
public:
    /// `isKnownId` says whether a token has that id. Throws BadInput or Unsupported.
    static PostProcessor read(const std::optional<JsonField>& field,
                              const std::function<bool(std::int64_t)>& isKnownId);

    const std::vector<std::int32_t>& before() const { return before_; }
    const std::vector<std::int32_t>& after() const { return after_; }

private:
    using KnownId = std::function<bool(std::int64_t)>;
    void readInto(const JsonField& field, const KnownId& isKnownId);
    void readTemplate(const JsonField& field, const KnownId& isKnownId);

    std::vector<std::int32_t> before_;
    std::vector<std::int32_t> after_;
};

} // namespace vitrine::engine
