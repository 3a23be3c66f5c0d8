// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The steps that a Generator will run: what its prefill is cut into, what decoding may come to, the pool that holds it all.

#include <algorithm>
#include <array>
#include <deque>
#include <set>

#include "engine/generation/generator_row.h"

namespace vitrine::engine {

/// A pool that holds every request to its end.
void Generator::sizePool(KvCacheOptions& cacheOptions) const {
    cacheOptions.poolPages = 0;
    cacheOptions.poolSequences = static_cast<std::int64_t>(rows_.size());
    for (const KvGroup& group : kvGroups(model_.config(), cacheOptions)) {
        for (const auto& row : rows_) {
            const std::int64_t tokens =
                options_.priorTokens + row->result().promptTokens + row->request().maxNewTokens - 1;
            cacheOptions.poolPages += group.ring() ? 0 : (tokens + group.pageTokens - 1) / group.pageTokens;
        }
    }
}

/// The next step of the prefill: as many tokens as it takes of the first rows that have not had all of theirs. `done` of each
/// row moves on.
Generator::PrefillStep Generator::nextPrefill(std::vector<std::int64_t>& done) const {
    PrefillStep step;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        const std::vector<std::int32_t>& prompt = rows_[i]->request().prompt;
        const auto length = static_cast<std::int64_t>(prompt.size());
        const std::int64_t count = std::min(chunk_ - step.tokens, length - done[i]);
        if (count == 0) {
            continue;
        }
        const bool last = done[i] + count == length;
        step.sequences.push_back(
            {rows_[i]->sequence, {prompt.data() + done[i], static_cast<std::size_t>(count)}, last, length});
        if (last) {
            step.sampled.push_back(rows_[i].get());
        }
        step.tokens += count;
        done[i] += count;
    }
    return step;
}

/// Batches that decoding may come to: every row that decodes, and what is left of them as rows end. Where only lengths end
/// rows, those are known; else any number may be left, and beyond some tens of rows kernels are the same for neighbours.
std::vector<std::vector<Generator::Row*>> Generator::decodeBatches() const {
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
void Generator::prepare(const KvCacheOptions& cacheOptions) {
    if (!model_.context().can().compilesKernels) {
        return;
    }
    std::vector<StepBatch> steps;
    std::deque<std::vector<kernels::SampleParameters>> samplings; // the steps view them
    std::set<std::array<std::int64_t, 5>> known;
    const auto add = [&](std::string_view name, std::vector<StepSequence> sequences, const std::vector<Row*>& sampled) {
        const auto& sampling = samplings.emplace_back(samplingOf(sampled));
        std::int64_t tokens = 0;
        std::size_t longest = 0;
        for (const StepSequence& sequence : sequences) {
            tokens += static_cast<std::int64_t>(sequence.tokens.size());
            longest = std::max(longest, sequence.tokens.size());
        }
        if (!known
                 .insert({tokens, static_cast<std::int64_t>(sequences.size()), static_cast<std::int64_t>(longest),
                          static_cast<std::int64_t>(sampled.size()), kernels::plainlyGreedy(sampling) ? 1 : 0})
                 .second) {
            samplings.pop_back();
            return;
        }
        StepBatch& step = steps.emplace_back();
        step.name = name;
        step.sequences = std::move(sequences);
        step.sampling = sampling;
        step.topLogprobs = options_.topLogprobs;
    };
    std::vector<std::int64_t> done(rows_.size());
    for (PrefillStep step = nextPrefill(done); !step.sequences.empty(); step = nextPrefill(done)) {
        add("prefill", std::move(step.sequences), step.sampled);
    }
    for (const std::vector<Row*>& batch : decodeBatches()) {
        std::vector<StepSequence> sequences;
        sequences.reserve(batch.size());
        for (const Row* row : batch) {
            sequences.push_back({row->sequence, {row->request().prompt.data(), 1}, true});
        }
        add("decode", std::move(sequences), batch);
    }
    KvCacheOptions cache = cacheOptions;
    cache.kind = KvCacheKind::Dynamic; // kernels do not know the difference, and nothing has to fit
    cache.maxTokens = 0;
    model_.prepare(steps, cache, options_.progress);
}

/// `pending`: tokens of each row that the device has sampled and the host has not read.
std::vector<kernels::SampleParameters> Generator::samplingOf(const std::vector<Row*>& rows, std::int64_t pending) {
    std::vector<kernels::SampleParameters> parameters;
    parameters.reserve(rows.size());
    for (const Row* row : rows) {
        parameters.push_back(row->sampling(pending));
    }
    return parameters;
}

} // namespace vitrine::engine
