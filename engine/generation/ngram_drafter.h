// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// N-gram look-up (prompt lookup): drafts are copied from the request's own text. The last tokens of the request are
// searched for in what stands before them, and the draft is what followed there. It needs no second model and no
// memory. It is right often where an answer repeats its prompt: copying, editing, summaries, code.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/generation/speculation.h"

namespace vitrine::engine {

/// How many of the last tokens must stand at an earlier place too.
struct NgramSizes {
    std::int64_t shortest = 2, longest = 4;
};

/// The draft for this history: of the places where at least `shortest` of the last tokens stand once more, the one
/// where most of them do (up to `longest`), and of equal ones the last. Where the tokens after that place run into the
/// end of the history, the draft goes on with its own tokens, so that a repeating text is continued. Empty where there
/// is no such place. Takes time proportional to the history. REQUIRES 1 <= shortest <= longest.
std::vector<std::int32_t> ngramDraft(std::span<const std::int32_t> history, const NgramSizes& sizes,
                                     std::int64_t tokens);

class NgramDrafter final : public Drafter {
public:
    explicit NgramDrafter(const NgramSizes& sizes) : sizes_(sizes) {}

    void draft(std::span<const DraftJob> jobs) override;
    void forget(std::int32_t) override {}
    void forgetAll() override {}

private:
    NgramSizes sizes_;
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
