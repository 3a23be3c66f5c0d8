// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The steps that a run of requests will come to, whose kernels are compiled before the first of them.

#include <algorithm>
#include <array>
#include <deque>
#include <set>

#include "engine/generation/generate_engine.h"

namespace vitrine::engine {

/// Batches that decoding may come to: every row that decodes, and what is left of them as rows end. Where only lengths
/// end rows, those are known; else any number may be left, and beyond some tens of rows kernels are the same for
/// neighbours.
std::vector<std::vector<GenerateEngine::Row*>> GenerateEngine::decodeBatches() const {
    constexpr std::size_t kEveryCount = 64;
    std::vector<Row*> rows;
    bool anyEnd = false;
    for (const auto& row : rows_) {
        if (row->request().maxNewTokens > 1) {
            rows.push_back(row.get());
            anyEnd = anyEnd || !row->request().stopTokens.empty() || !row->request().stopTexts.empty();
        }
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row* a, const Row* b) { return a->request().maxNewTokens > b->request().maxNewTokens; });
    std::vector<std::vector<Row*>> batches;
    for (std::size_t count = rows.size(); count > 0; --count) {
        const bool isEnd =
            count == rows.size() || rows[count - 1]->request().maxNewTokens > rows[count]->request().maxNewTokens;
        const bool powerOfTwo = (count & (count - 1)) == 0;
        if (isEnd || (anyEnd && (count <= kEveryCount || powerOfTwo))) {
            batches.emplace_back(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(count));
        }
    }
    return batches;
}

/// Kernels of every step that may come are compiled before anything is timed.
void GenerateEngine::prepare(const KvCacheOptions& cacheOptions) {
    if (!model_.context().can().compilesKernels) {
        return;
    }
    std::vector<StepBatch> steps;
    std::deque<std::vector<kernels::SampleParameters>> samplings; // the steps view them
    std::set<std::array<std::int64_t, 5>> known;
    const bool drawLogprobs = std::ranges::any_of(rows_, [](const auto& row) { return row->request().drawLogprobs; });
    const bool experts = std::ranges::any_of(rows_, [](const auto& row) { return row->request().returnsExperts; });
    const auto add = [&](std::string_view name, std::vector<StepSequence> sequences,
                         std::vector<kernels::SampleParameters> sampling) {
        std::int64_t tokens = 0;
        std::size_t longest = 0;
        for (const StepSequence& sequence : sequences) {
            tokens += static_cast<std::int64_t>(sequence.tokens.size());
            longest = std::max(longest, sequence.tokens.size());
        }
        if (!known
                 .insert({tokens, static_cast<std::int64_t>(sequences.size()), static_cast<std::int64_t>(longest),
                          static_cast<std::int64_t>(sampling.size()), kernels::plainlyGreedy(sampling) ? 1 : 0})
                 .second) {
            return;
        }
        StepBatch& step = steps.emplace_back();
        step.name = name;
        step.sequences = std::move(sequences);
        step.sampling = samplings.emplace_back(std::move(sampling));
        step.topLogprobs = options_.topLogprobs;
        step.drawLogprobs = drawLogprobs;
        step.experts = experts;
    };
    for (StepSchedule schedule = nextPrefill(); !schedule.empty(); schedule = nextPrefill()) {
        std::vector<StepSequence> sequences;
        std::vector<kernels::SampleParameters> sampling;
        for (const ScheduledRow& scheduled : schedule.rows) {
            const Row& row = *rows_[static_cast<std::size_t>(scheduled.request)];
            const std::span<const std::int32_t> prompt = row.request().prompt;
            sequences.push_back(
                {row.number(),
                 prompt.subspan(static_cast<std::size_t>(scheduled.begin), static_cast<std::size_t>(scheduled.tokens)),
                 scheduled.samples, row.result().promptTokens});
            if (scheduled.samples) {
                sampling.push_back(row.sampling());
            }
        }
        add("prefill", std::move(sequences), std::move(sampling));
    }
    const std::vector<std::int32_t> checked(static_cast<std::size_t>(1 + speculation_.draftTokens), kNoToken);
    std::vector<std::size_t> lengths = {1};
    for (std::int64_t draft = 1; speculation_.on() && draft <= speculation_.draftTokens; ++draft) {
        if (draftLength(draft, speculation_.draftTokens) == draft) {
            lengths.push_back(static_cast<std::size_t>(1 + draft));
        }
    }
    for (const std::vector<Row*>& batch : decodeBatches()) {
        for (const std::size_t tokens : lengths) {
            std::vector<StepSequence> sequences;
            std::vector<kernels::SampleParameters> sampling;
            for (const Row* row : batch) {
                StepSequence& sequence = sequences.emplace_back();
                sequence.sequence = row->number();
                sequence.tokens = std::span(checked).first(tokens);
                sequence.logitTokens = static_cast<std::int64_t>(tokens);
                sampling.insert(sampling.end(), tokens, row->sampling());
            }
            add("decode", std::move(sequences), std::move(sampling));
        }
    }
    for (const auto& row : rows_) {
        row->prefilled = 0;
    }
    KvCacheOptions cache = cacheOptions;
    cache.kind = KvCacheKind::Dynamic; // kernels do not know the difference, and nothing has to fit
    cache.maxTokens = 0;
    model_.prepare(steps, cache, options_.progress);
}

} // namespace vitrine::engine
