// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The experts that the routers chose while a request was served.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/model/expert_choices.h"

namespace vitrine::engine {

/// The choices for the tokens that the model read: the prompt and the new tokens but for the last one. Tokens whose
/// keys were found in known pages were not read for this request, so theirs are missing: those before `firstKnown`.
struct ReadExperts {
    std::int64_t firstKnown = 0;
    ExpertChoices choices; ///< of the tokens from firstKnown on
    /// Its first rows are those of the tokens before firstKnown, as another request read them; null: they are missing.
    std::shared_ptr<const ExpertChoices> before;

    std::int64_t tokens() const { return firstKnown + choices.rows(); }
    bool complete() const { return firstKnown == 0 || before != nullptr; }
    /// One token's row; empty where it is missing. REQUIRES a token below tokens().
    std::span<const std::uint8_t> row(std::int64_t token) const;
    /// REQUIRES that the token's row is not missing.
    std::int32_t id(std::int64_t token, std::int64_t layer, std::int64_t place) const;
};

/// Brings the choices of one request together. A token that is read again, after a preemption or where a draft was
/// wrong, keeps the newest choice, which is that of the pass whose keys the cache has.
class ExpertRecord {
public:
    /// `out` must outlive this object. Until finish() its rows may have gaps.
    explicit ExpertRecord(ReadExperts& out) : out_(&out) {}

    /// A step has read `tokens` tokens of the request, the first one at `position`. Theirs are the rows from `row` on.
    void note(std::int64_t position, std::int64_t tokens, const ExpertChoices& step, std::int64_t row);
    /// Tokens that are not computed (on Meta) get zeros, so that there are `tokens` in all.
    void skipTo(std::int64_t tokens);
    /// The request has ended, and of its tokens the first `tokens` may have been read. Rows behind them belong to
    /// drafts or to steps that came too late.
    void finish(std::int64_t tokens);

private:
    void fit(std::int64_t begin, std::int64_t end);

    ReadExperts* out_;
    std::vector<bool> known_; ///< by row of the choices
    bool finished_ = false;
};

} // namespace vitrine::engine
