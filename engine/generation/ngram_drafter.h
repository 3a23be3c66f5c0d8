// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// N-gram look-up (prompt lookup): drafts are copied from the request's own text. The last tokens of the request are
// searched for in what stands before them, and the draft is what followed there (ngram_index.h). It needs no second
// model. It is right often where an answer repeats its prompt: copying, editing, summaries, code.

#include <cstdint>
#include <map>

#include "engine/generation/ngram_index.h"
#include "engine/generation/speculation.h"

namespace vitrine::engine {

class NgramDrafter final : public Drafter {
public:
    explicit NgramDrafter(const NgramSizes& sizes) : sizes_(sizes) {}

    void draft(std::span<const DraftJob> jobs) override;
    void forget(std::int32_t request) override { texts_.erase(request); }
    void forgetAll() override { texts_.clear(); }

private:
    NgramSizes sizes_;
    std::map<std::int32_t, NgramIndex> texts_; ///< by request
};

/// Stands for n-gram look-up in plans. On Meta tokens are numbers without a meaning, so there is no text to look into:
/// every request gets a draft of full length, and what is right of it is assumed (Speculation::assumedAcceptance).
class PlannedDrafter final : public Drafter {
public:
    void draft(std::span<const DraftJob> jobs) override;
    void forget(std::int32_t) override {}
    void forgetAll() override {}
};

} // namespace vitrine::engine
