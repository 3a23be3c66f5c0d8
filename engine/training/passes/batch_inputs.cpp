// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/passes/batch_inputs.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace vitrine::engine {

using base::MemoryCategory;
using kernels::DType;
using kernels::Shape;
using kernels::Tensor;

namespace {

void checkTargets(const TrainingBatch& batch, std::int64_t vocab) {
    if (batch.count() != static_cast<std::int64_t>(batch.tokens.size()) ||
        batch.targets.size() != batch.tokens.size()) {
        throw base::Internal("a training batch has lengths or targets that do not fit its tokens");
    }
    for (const std::int32_t target : batch.targets) {
        if (target >= vocab) {
            throw base::BadInput(fmt::format("targets: id {} is outside the vocabulary of {}", target, vocab));
        }
    }
}

void checkPrefixes(const TrainingBatch& batch) {
    if (!batch.prefixes.empty() && batch.prefixes.size() != batch.lengths.size()) {
        throw base::Internal("a training batch has prefixes that do not fit its documents");
    }
    for (std::size_t i = 0; i < batch.prefixes.size(); ++i) {
        const std::int32_t prefix = batch.prefixes[i];
        const bool earlier = prefix >= 0 && prefix < static_cast<std::int32_t>(i);
        if (prefix != -1 && (!earlier || batch.prefixes[static_cast<std::size_t>(prefix)] != -1)) {
            throw base::Internal("a training batch has a prefix that is no earlier document without a prefix");
        }
    }
}

/// The positions of documents with prefixes, and how long the longest document with each prefix is.
void addPrefixes(const TrainingBatch& batch, StepBatch& step) {
    for (std::size_t i = 0; i < batch.prefixes.size(); ++i) {
        if (batch.prefixes[i] < 0) {
            continue;
        }
        const auto prefix = static_cast<std::size_t>(batch.prefixes[i]);
        step.sequences[i].firstPosition = batch.lengths[prefix];
        std::int64_t& longest = step.sequences[prefix].promptTokens;
        longest = std::max(longest, std::int64_t{batch.lengths[prefix]} + batch.lengths[i]);
    }
}

/// Dynamic rotary frequencies follow the length of a sequence. Then a prefix has one set of keys for all of its
/// documents only if these would give it the same frequencies.
void checkFrequencies(const TrainingBatch& batch, const StepInputs& step) {
    const auto frequenciesOf = [&](std::size_t document) {
        const RopeSpan& span = step.ropeSpans[document];
        const std::size_t count = step.frequencies.size() / step.ropeSpans.size();
        return std::pair(span.scale, std::span(step.frequencies).subspan(static_cast<std::size_t>(span.offset), count));
    };
    for (std::size_t i = 0; i < batch.prefixes.size() && !step.frequencies.empty(); ++i) {
        if (batch.prefixes[i] < 0) {
            continue;
        }
        const auto [scale, values] = frequenciesOf(i);
        const auto [prefixScale, prefixValues] = frequenciesOf(static_cast<std::size_t>(batch.prefixes[i]));
        if (scale != prefixScale || !std::ranges::equal(values, prefixValues)) {
            throw base::Unsupported("model: its rotary frequencies follow the length of each sequence, so that these "
                                    "answers cannot share a prompt; choose sequences inside the model's context");
        }
    }
}

/// `tokens`: of the batch.
StepBatch documentsOf(const TrainingBatch& batch, std::span<const std::int32_t> tokens) {
    StepBatch step;
    step.name = "train";
    std::size_t begin = 0;
    for (const std::int32_t length : batch.lengths) {
        StepSequence document;
        document.tokens = tokens.subspan(begin, static_cast<std::size_t>(length));
        step.sequences.push_back(document);
        begin += batch.tokens.empty() ? 0 : static_cast<std::size_t>(length);
    }
    addPrefixes(batch, step);
    return step;
}

/// The places of tokens by their ids, those of equal ids in order. Counts, because sorting half a million takes longer
/// than pricing a step on Meta. Ids are inside the vocabulary.
std::vector<std::int32_t> orderById(const std::vector<std::int32_t>& tokens, std::int64_t vocab) {
    std::vector<std::int32_t> next(static_cast<std::size_t>(vocab) + 1);
    for (const std::int32_t id : tokens) {
        ++next[static_cast<std::size_t>(id) + 1];
    }
    std::partial_sum(next.begin(), next.end(), next.begin());
    std::vector<std::int32_t> order(tokens.size());
    for (std::size_t place = 0; place < tokens.size(); ++place) {
        order[static_cast<std::size_t>(next[static_cast<std::size_t>(tokens[place])]++)] =
            static_cast<std::int32_t>(place);
    }
    return order;
}

} // namespace

BatchInputs::BatchInputs(const OpRunner& runner, const Model& model, const TrainingBatch& batch)
    : experts_(runner, model, batch) {
    const bool fills = inputValues(runner.context()) == InputValues::Filled;
    if (fills) {
        checkTargets(batch, model.config().vocab);
    }
    checkPrefixes(batch);
    // A plan's documents have lengths only; tokens that nobody looks at stand for each of them.
    const std::vector<std::int32_t> unread(
        batch.tokens.empty() ? static_cast<std::size_t>(std::ranges::max(batch.lengths)) : 0);
    const StepBatch documents = documentsOf(batch, batch.tokens.empty() ? unread : batch.tokens);
    StepInputs step(model, documents, nullptr, inputValues(runner.context()));
    checkFrequencies(batch, step);
    std::vector<std::int32_t> values = std::move(step.inputs);
    std::int64_t count = step.inputCount;
    const auto append = [&](std::size_t size, const auto& make) {
        const StepInputs::Slice slice{count, static_cast<std::int64_t>(size)};
        count += slice.count;
        if (fills) {
            const std::vector<std::int32_t> more = make();
            values.insert(values.end(), more.begin(), more.end());
        }
        return slice;
    };
    const auto tokens = static_cast<std::size_t>(batch.count());
    const StepInputs::Slice targets = append(tokens, [&] { return batch.targets; });
    const StepInputs::Slice order = append(tokens, [&] { return orderById(batch.tokens, model.config().vocab); });
    const StepInputs::Slice starts =
        batch.lengths.size() > 1 ? append(tokens, [&] { return documentStarts(batch.lengths); }) : StepInputs::Slice{};
    const DocumentLayout layout{batch.lengths, batch.prefixes};
    StepInputs::Slice ofPrefixStarts, ofPrefixEnds;
    if (batch.sharesPrompts()) {
        ofPrefixStarts = append(tokens, [&] { return prefixStarts(layout); });
        ofPrefixEnds = append(tokens, [&] { return prefixEnds(layout); });
    }
    const auto uploaded = [&](std::string_view name, DType dtype, std::int64_t elements, const auto& host) {
        Tensor tensor = runner.make(MemoryCategory::Activations, name, dtype, Shape{elements});
        runner.context().upload(host.data(), tensor.view().data, tensor.view().bytes());
        return tensor;
    };
    inputs_ = uploaded("batch.inputs", DType::I32, count, values);
    if (!step.frequencies.empty()) {
        frequencies_ = uploaded("rope.inverse_frequency", DType::F32,
                                static_cast<std::int64_t>(step.frequencies.size()), step.frequencies);
    }
    tokens_ = layerTokens(model.leader(), step, inputs_.view(), frequencies_.view());
    ids_ = inputOf(inputs_.view(), step.ids);
    targets_ = inputOf(inputs_.view(), targets);
    order_ = inputOf(inputs_.view(), order);
    if (starts.count > 0) {
        places_.starts = inputOf(inputs_.view(), starts);
    }
    if (ofPrefixStarts.count > 0) {
        places_.prefixStarts = inputOf(inputs_.view(), ofPrefixStarts);
        places_.prefixEnds = inputOf(inputs_.view(), ofPrefixEnds);
    }
}

} // namespace vitrine::engine
