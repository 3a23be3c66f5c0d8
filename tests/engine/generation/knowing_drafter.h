// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <gtest/gtest.h>
#include <span>
#include <utility>
#include <vector>

#include "engine/generation/speculation.h"

namespace vitrine::engine::test {

/// Knows the answers, and drafts them with a wrong token at some places. So drafts are kept whole, in part and not at
/// all.
class KnowingDrafter final : public Drafter {
public:
    explicit KnowingDrafter(std::vector<GenerateResult> answers) : answers_(std::move(answers)) {}

    void draft(std::span<const DraftJob> jobs) override {
        for (const DraftJob& job : jobs) {
            EXPECT_TRUE(job.request->draft().empty());
            const std::vector<std::int32_t>& ids = answers_[static_cast<std::size_t>(job.request->number())].ids;
            const std::size_t begin = job.request->result().ids.size();
            for (std::size_t i = begin; i < ids.size() && i < begin + static_cast<std::size_t>(job.tokens); ++i) {
                job.request->addToDraft(i % 5 == 3 ? (ids[i] + 1) % 200 : ids[i]);
            }
        }
    }
    void forget(std::int32_t) override {}
    void forgetAll() override {}

private:
    std::vector<GenerateResult> answers_;
};

} // namespace vitrine::engine::test
