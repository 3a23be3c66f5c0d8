// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/policy/policy_batches.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "base/error.h"

namespace vitrine::engine {

namespace {

/// Rows that stay together: the answers of one prompt, or a single row.
struct RowGroup {
    std::vector<std::int64_t> rows;
    std::int64_t inputs = 0; ///< tokens of the rows by themselves
    std::int64_t prompt = 0; ///< tokens of their prompt

    /// Tokens that pass the model once for all rows: all but the prompt's last one, which each answer has in front,
    /// because it predicts the answer's first one.
    std::int64_t shared() const { return rows.size() > 1 ? prompt - 1 : 0; }
    /// Of the batch that the rows make.
    std::int64_t tokens() const { return inputs - (static_cast<std::int64_t>(rows.size()) - 1) * shared(); }
    void add(const Rollouts& rollouts, std::int64_t row);
};

std::int64_t inputTokens(const Rollouts& rollouts, std::int64_t row) {
    return rollouts.lengths[static_cast<std::size_t>(row)] - 1; // the last one predicts nothing
}

void RowGroup::add(const Rollouts& rollouts, std::int64_t row) {
    rows.push_back(row);
    inputs += inputTokens(rollouts, row);
    prompt = rollouts.promptLengths[static_cast<std::size_t>(row)];
}

/// In the order of their first rows.
std::vector<RowGroup> rowGroups(const Rollouts& rollouts, bool sharePrompts) {
    std::vector<RowGroup> out;
    std::map<std::vector<std::int32_t>, std::size_t> byPrompt;
    for (std::int64_t row = 0; row < rollouts.rows; ++row) {
        std::size_t group = out.size();
        if (sharePrompts) {
            const std::span<const std::int32_t> prompt = rollouts.prompt(row);
            group = byPrompt.try_emplace({prompt.begin(), prompt.end()}, out.size()).first->second;
        }
        if (group == out.size()) {
            out.emplace_back();
        }
        out[group].add(rollouts, row);
    }
    return out;
}

/// Parts of at most so many rows; 0: of at most so many tokens where one row does not have more.
std::vector<RowGroup> dividedGroup(const Rollouts& rollouts, const RowGroup& group, std::int64_t rows,
                                   std::int64_t tokens) {
    std::vector<RowGroup> out(1);
    for (const std::int64_t row : group.rows) {
        const RowGroup& last = out.back();
        const auto count = static_cast<std::int64_t>(last.rows.size());
        // The first row of a part has its prompt by itself; from the second one on only the answer is added.
        const std::int64_t more = inputTokens(rollouts, row) - (count > 0 ? group.shared() : 0);
        if (count > 0 && (rows > 0 ? count == rows : last.tokens() + more > tokens)) {
            out.emplace_back();
        }
        out.back().add(rollouts, row);
    }
    return out;
}

/// Builds one micro-batch.
class BatchMaker {
public:
    BatchMaker(const Rollouts& rollouts, const PolicyBatchOptions& options)
        : rollouts_(rollouts), options_(options), answerTokens_(rollouts.answerTokens()) {}

    /// Rows of this group, whole or in parts, follow.
    void beginGroup(const RowGroup& whole);
    void add(const RowGroup& group);
    bool empty() const { return rows_ == 0; }
    bool hasRoomFor(const RowGroup& group) const {
        return options_.rows > 0 ? rows_ + static_cast<std::int64_t>(group.rows.size()) <= options_.rows
                                 : tokenCount() + group.tokens() <= options_.tokens;
    }
    void finish(PolicyBatches& out);

private:
    std::int64_t tokenCount() const { return static_cast<std::int64_t>(batch_.tokens.size()); }
    void addInputs(std::span<const std::int32_t> tokens, std::int32_t prefix);
    void addExperts(std::int64_t row, std::int64_t from, std::int64_t to, bool ofGroup);
    void predictNothing(std::int64_t count);
    void addRow(std::int64_t row, std::int64_t from, std::int32_t prefix);

    const Rollouts& rollouts_;
    const PolicyBatchOptions& options_;
    TrainingBatch batch_;
    PolicyTokens tokens_;
    std::vector<std::int64_t> places_;
    std::vector<std::int64_t> promptExperts_; ///< of the group: for each prompt token the place of its experts
    std::int64_t rows_ = 0;
    std::int64_t answerTokens_; ///< of all rows
};

void BatchMaker::addInputs(std::span<const std::int32_t> tokens, std::int32_t prefix) {
    batch_.tokens.insert(batch_.tokens.end(), tokens.begin(), tokens.end());
    batch_.lengths.push_back(static_cast<std::int32_t>(tokens.size()));
    batch_.prefixes.push_back(prefix);
}

void BatchMaker::beginGroup(const RowGroup& whole) {
    promptExperts_.clear();
    for (std::int64_t token = 0; token < whole.prompt && !rollouts_.experts.empty(); ++token) {
        const auto has = [&](std::int64_t row) { return rollouts_.experts.has(row * rollouts_.width + token); };
        const auto first = std::ranges::find_if(whole.rows, has);
        const std::int64_t row = first == whole.rows.end() ? whole.rows.front() : *first;
        promptExperts_.push_back(row * rollouts_.width + token);
    }
}

/// Of the tokens [from, to) of a row. Those of its prompt are the group's where they are `ofGroup` or the row has none.
void BatchMaker::addExperts(std::int64_t row, std::int64_t from, std::int64_t to, bool ofGroup) {
    const GivenExperts& all = rollouts_.experts;
    if (all.empty()) {
        return;
    }
    batch_.experts.layers = all.layers;
    batch_.experts.k = all.k;
    for (std::int64_t token = from; token < to; ++token) {
        std::int64_t place = row * rollouts_.width + token;
        if (token < static_cast<std::int64_t>(promptExperts_.size()) && (ofGroup || !all.has(place))) {
            place = promptExperts_[static_cast<std::size_t>(token)];
        }
        const std::span<const std::uint16_t> record = all.record(place);
        batch_.experts.ids.insert(batch_.experts.ids.end(), record.begin(), record.end());
    }
}

void BatchMaker::predictNothing(std::int64_t count) {
    const auto size = batch_.targets.size() + static_cast<std::size_t>(count);
    batch_.targets.resize(size, -1);
    places_.resize(size, -1);
    tokens_.advantages.resize(size);
    tokens_.weights.resize(size);
}

/// The tokens of the row from `from` on, which is in its prompt.
void BatchMaker::addRow(std::int64_t row, std::int64_t from, std::int32_t prefix) {
    const auto place = static_cast<std::size_t>(row);
    const std::int64_t prompt = rollouts_.promptLengths[place];
    const std::span<const std::int32_t> all(rollouts_.ids.data() + row * rollouts_.width,
                                            static_cast<std::size_t>(inputTokens(rollouts_, row)));
    addInputs(all.subspan(static_cast<std::size_t>(from)), prefix);
    addExperts(row, from, inputTokens(rollouts_, row), false);
    predictNothing(prompt - 1 - from);
    const std::span<const std::int32_t> answer = rollouts_.answer(row);
    const double tokens = options_.aggregation == Aggregation::Token
                              ? static_cast<double>(answerTokens_)
                              : static_cast<double>(rollouts_.rows) * static_cast<double>(rollouts_.saidTokens(row));
    for (std::int64_t token = prompt; token < rollouts_.lengths[place]; ++token) {
        if (!rollouts_.isSaid(row, token)) {
            predictNothing(1);
            continue;
        }
        batch_.targets.push_back(answer[static_cast<std::size_t>(token - prompt)]);
        tokens_.advantages.push_back(rollouts_.advantages[place]);
        tokens_.weights.push_back(static_cast<float>(1 / tokens));
        places_.push_back(row * rollouts_.width + token);
    }
    ++rows_;
}

void BatchMaker::add(const RowGroup& group) {
    std::int32_t prefix = -1;
    if (group.shared() > 0) {
        prefix = static_cast<std::int32_t>(batch_.lengths.size());
        addInputs(rollouts_.prompt(group.rows.front()).first(static_cast<std::size_t>(group.shared())), -1);
        addExperts(group.rows.front(), 0, group.shared(), true);
        predictNothing(group.shared());
    }
    for (const std::int64_t row : group.rows) {
        addRow(row, group.shared(), prefix);
    }
}

void BatchMaker::finish(PolicyBatches& out) {
    if (!batch_.sharesPrompts()) {
        batch_.prefixes.clear();
    }
    out.batches.push_back(std::move(batch_));
    out.tokens.push_back(std::move(tokens_));
    out.places.push_back(std::move(places_));
    batch_ = {};
    tokens_ = {};
    places_ = {};
    rows_ = 0;
}

void checkExperts(const Rollouts& rollouts) {
    const GivenExperts& experts = rollouts.experts;
    const std::size_t needed = rollouts.ids.size() * experts.width();
    if (!experts.empty() && (experts.k < 1 || experts.ids.size() != needed)) {
        throw base::BadInput(fmt::format("experts: there are {} ids, and {} rows of {} tokens with {} layers of {} "
                                         "experts need {}; give a record for every token",
                                         experts.ids.size(), rollouts.rows, rollouts.width, experts.layers, experts.k,
                                         needed));
    }
}

} // namespace

std::int64_t PolicyBatches::count() const {
    return std::accumulate(batches.begin(), batches.end(), std::int64_t{0},
                           [](std::int64_t sum, const TrainingBatch& batch) { return sum + batch.count(); });
}

std::int64_t PolicyBatches::largest() const {
    std::int64_t out = 0;
    for (const TrainingBatch& batch : batches) {
        out = std::max(out, batch.count());
    }
    return out;
}

PolicyBatches policyBatches(const Rollouts& rollouts, const PolicyBatchOptions& options) {
    checkExperts(rollouts);
    PolicyBatches out;
    BatchMaker maker(rollouts, options);
    for (const RowGroup& whole : rowGroups(rollouts, options.sharePrompts)) {
        maker.beginGroup(whole);
        for (const RowGroup& group : dividedGroup(rollouts, whole, options.rows, options.tokens)) {
            if (!maker.empty() && !maker.hasRoomFor(group)) {
                maker.finish(out);
            }
            maker.add(group);
        }
    }
    maker.finish(out);
    for (const auto& [values, kind] :
         {std::pair{&rollouts.old, &PolicyTokens::old}, std::pair{&rollouts.rollout, &PolicyTokens::rollout},
          std::pair{&rollouts.reference, &PolicyTokens::reference}}) {
        if (!values->empty()) {
            setValues(out, *values, kind);
        }
    }
    return out;
}

std::vector<float> rolloutValues(const Rollouts& rollouts, const PolicyBatches& batches,
                                 const std::vector<std::vector<float>>& values) {
    std::vector<float> out(static_cast<std::size_t>(rollouts.rows * rollouts.width));
    for (std::size_t batch = 0; batch < batches.places.size(); ++batch) {
        for (std::size_t token = 0; token < batches.places[batch].size(); ++token) {
            if (const std::int64_t place = batches.places[batch][token]; place >= 0) {
                out[static_cast<std::size_t>(place)] = values[batch][token];
            }
        }
    }
    return out;
}

void setValues(PolicyBatches& batches, const std::vector<float>& values, std::vector<float> PolicyTokens::* kind) {
    for (std::size_t batch = 0; batch < batches.places.size(); ++batch) {
        std::vector<float>& out = batches.tokens[batch].*kind;
        out.clear();
        for (const std::int64_t place : batches.places[batch]) {
            out.push_back(place >= 0 ? values[static_cast<std::size_t>(place)] : 0);
        }
    }
}

} // namespace vitrine::engine
