// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <bit>
#include <fmt/format.h>

#include "base/error.h"
#include "engine/model/step.h"

namespace vitrine::engine {

namespace {

/// The position of the first of a sequence's new tokens.
std::int64_t firstPositionOf(const StepSequence& item, const KvCache* cache) {
    return cache == nullptr ? item.firstPosition : cache->length(item.sequence);
}

/// That of all rows which draw; 0 where there are several.
float onlyTemperature(std::span<const kernels::SampleParameters> sampling) {
    float only = 0;
    for (const kernels::SampleParameters& row : sampling) {
        if (row.temperature > 0 && only > 0 && row.temperature != only) {
            return 0;
        }
        only = std::max(only, row.temperature);
    }
    return only;
}

} // namespace

InputValues inputValues(const kernels::Context& context) {
    return context.can().computesValues ? InputValues::Filled : InputValues::OnlySizes;
}

StepInputs::StepInputs(const Model& model, const StepBatch& stepBatch, const KvCache* cache, InputValues values)
    : batch(stepBatch) {
    for (const StepSequence& item : batch.sequences) {
        if (item.tokens.empty()) {
            throw base::Internal("a step has a sequence without tokens");
        }
        appends.push_back({item.sequence, static_cast<std::int64_t>(item.tokens.size()), item.keep});
        tokens += appends.back().tokens;
        rows += item.wantsLogits ? item.logitTokens : 0;
    }
    const bool everyRow = batch.logits == StepLogits::All;
    rows = everyRow ? tokens : rows;
    if (batch.drawLogprobs && model.context().traits().features.exactRows) {
        trainerTemperature = onlyTemperature(batch.sampling);
    }
    if (values == InputValues::Filled) {
        fill(model, cache);
    } else {
        addSizes(cache);
    }
    addRope(model, cache);
    // After all else: histories grow, and the other arrays should stay where they are.
    if (!kernels::plainlyGreedy(batch.sampling) || batch.topLogprobs > 0) {
        const std::vector<std::int32_t> packed = kernels::packSampleParameters(batch.sampling);
        sampling =
            values == InputValues::Filled ? append(packed) : appendSize(static_cast<std::int64_t>(packed.size()));
    }
}

void StepInputs::fill(const Model& model, const KvCache* cache) {
    std::vector<std::int32_t> idList, positionList, sequenceList, offsetList = {0}, rowList;
    const auto all = static_cast<std::size_t>(tokens);
    idList.reserve(all);
    positionList.reserve(all);
    sequenceList.reserve(all);
    inputs.reserve(3 * all);
    for (std::size_t s = 0; s < batch.sequences.size(); ++s) {
        const StepSequence& item = batch.sequences[s];
        const std::int64_t start = firstPositionOf(item, cache);
        for (std::size_t t = 0; t < item.tokens.size(); ++t) {
            const std::int32_t id = item.tokens[t];
            if (id < 0 || id >= model.config().vocab) {
                throw base::BadInput(
                    fmt::format("tokens: id {} is outside the vocabulary of {}", id, model.config().vocab));
            }
            idList.push_back(id);
            positionList.push_back(static_cast<std::int32_t>(start + static_cast<std::int64_t>(t)));
            sequenceList.push_back(static_cast<std::int32_t>(s));
        }
        offsetList.push_back(static_cast<std::int32_t>(idList.size()));
        if (item.wantsLogits) {
            for (std::int64_t back = item.logitTokens; back > 0; --back) {
                rowList.push_back(static_cast<std::int32_t>(static_cast<std::int64_t>(idList.size()) - back));
            }
        }
    }
    ids = append(idList);
    positions = append(positionList);
    sequence = append(sequenceList);
    offsets = append(offsetList);
    rowIds = batch.logits == StepLogits::All ? Slice{} : append(rowList);
    for (std::size_t g = 0; cache != nullptr && g < cache->groups().size(); ++g) {
        const KvTables tables = cache->tables(static_cast<int>(g), appends);
        groups.push_back({append(tables.pages), append(tables.first), append(tables.lengths), append(tables.firstAfter),
                          append(tables.lengthsAfter), tables.columns, tables.totalTokens});
    }
    if (cache == nullptr) {
        zeros = append(std::vector<std::int32_t>(appends.size(), 0));
    }
}

/// The same arrays as fill() makes.
void StepInputs::addSizes(const KvCache* cache) {
    const auto sequences = static_cast<std::int64_t>(appends.size());
    ids = appendSize(tokens);
    positions = appendSize(tokens);
    sequence = appendSize(tokens);
    offsets = appendSize(sequences + 1);
    rowIds = batch.logits == StepLogits::All ? Slice{} : appendSize(rows);
    for (std::size_t g = 0; cache != nullptr && g < cache->groups().size(); ++g) {
        const auto group = static_cast<int>(g);
        const std::int64_t columns = cache->tableColumns(group, appends);
        const std::int64_t after = cache->groups()[g].ring() ? sequences : 0;
        groups.push_back({appendSize(sequences * columns), appendSize(sequences), appendSize(sequences),
                          appendSize(after), appendSize(after), columns, cache->tokensToRead(group, appends)});
    }
    zeros = cache == nullptr ? appendSize(sequences) : Slice{};
}

StepInputs::Slice StepInputs::append(const std::vector<std::int32_t>& values) {
    inputs.insert(inputs.end(), values.begin(), values.end());
    return appendSize(static_cast<std::int64_t>(values.size()));
}

StepInputs::Slice StepInputs::appendSize(std::int64_t count) {
    const Slice slice{inputCount, count};
    inputCount += count;
    return slice;
}

void StepInputs::addRope(const Model& model, const KvCache* cache) {
    const RopeValues& own = model.decoder().rope();
    if (!own.inverseFrequency.empty()) {
        ropeSpans.push_back({0, tokens, 0, own.scale});
        return;
    }
    // Dynamic frequencies follow the length of their own sequence, so that a result does not depend on the batch.
    std::int64_t begin = 0;
    for (const StepSequence& item : batch.sequences) {
        const auto count = static_cast<std::int64_t>(item.tokens.size());
        const std::int64_t length = firstPositionOf(item, cache) + count;
        const RopeTable table = makeRopeTable(model.config(), std::max(length, item.promptTokens));
        ropeSpans.push_back({begin, begin + count, static_cast<std::int64_t>(frequencies.size()),
                             static_cast<float>(table.attentionScale)});
        frequencies.insert(frequencies.end(), table.inverseFrequency.begin(), table.inverseFrequency.end());
        begin += count;
    }
}

std::vector<std::int64_t> StepInputs::signature() const {
    std::vector<std::int64_t> out = {tokens,
                                     static_cast<std::int64_t>(appends.size()),
                                     rows,
                                     batch.logits == StepLogits::All ? 1 : 0,
                                     batch.sampling.empty() ? 0 : 1,
                                     batch.topLogprobs,
                                     batch.drawLogprobs ? 1 : 0,
                                     std::bit_cast<std::int32_t>(trainerTemperature),
                                     batch.experts ? 1 : 0,
                                     batch.logitsOut != nullptr ? 1 : 0,
                                     sampling.count,
                                     static_cast<std::int64_t>(ropeSpans.size())};
    for (const GroupSlices& group : groups) {
        out.push_back(group.columns);
    }
    return out;
}

bool StepInputs::onlySamples() const {
    return batch.logits == StepLogits::Last && batch.logitsOut == nullptr && batch.expertUse == nullptr;
}

bool StepInputs::onlyBest() const {
    return !batch.sampling.empty() && sampling.count == 0 && batch.logitsOut == nullptr && !batch.drawLogprobs;
}

bool StepInputs::repeatsAlike() const {
    // By name too: a prompt of one token runs the same kernels, but is reported as another step.
    const auto sequences = static_cast<std::int64_t>(appends.size());
    const bool decodes = batch.name == "decode" && rows == tokens; // drafts to check give a row of logits each
    // When all of a draft was right, the draft model lacks two tokens. More of them are a prompt that it reads.
    const bool drafts = batch.name == "draft" && rows == sequences && tokens <= 2 * sequences;
    return (decodes || drafts) && onlySamples() && frequencies.empty();
}

kernels::TensorView inputOf(const kernels::TensorView& inputs, const StepInputs::Slice& slice) {
    return {inputs.as<std::int32_t>() + slice.offset, inputs.dtype, kernels::Shape{slice.count}, {}};
}

LayerTokens layerTokens(const ModelRank& rank, const StepInputs& stepInputs, const kernels::TensorView& inputs,
                        const kernels::TensorView& frequencies) {
    LayerTokens out;
    out.positions = inputOf(inputs, stepInputs.positions);
    out.sequence = inputOf(inputs, stepInputs.sequence);
    out.offsets = inputOf(inputs, stepInputs.offsets);
    if (stepInputs.zeros.count > 0) {
        out.zeros = inputOf(inputs, stepInputs.zeros);
    }
    const kernels::TensorView& ownTable = rank.decoder().rope().inverseFrequency;
    const std::int64_t half = rank.config().ropeDim() / 2;
    for (const RopeSpan& span : stepInputs.ropeSpans) {
        const kernels::TensorView table =
            frequencies.empty() ? ownTable : kernels::sliceRows(frequencies, span.offset, span.offset + half);
        out.rope.push_back({span.begin, span.end, table, span.scale});
    }
    return out;
}

ExpertChoices choicesIn(const kernels::TensorView& packed) {
    ExpertChoices out;
    if (!packed.empty()) {
        out.layers = packed.shape[1];
        out.k = packed.shape[2];
        out.idBytes = packed.dtype == kernels::DType::U8 ? 1 : 2;
    }
    return out;
}

void sampleOnMeta(const StepInputs& stepInputs, std::int64_t vocab, std::vector<std::int32_t>& ids) {
    for (std::size_t row = 0; row < ids.size(); ++row) {
        ids[row] = kernels::metaToken(stepInputs.batch.sampling[row], vocab);
    }
}

void copyCarried(kernels::Context& context, const StepInputs& stepInputs, const kernels::TensorView& inputs) {
    for (const CarriedIds& part : stepInputs.batch.carried) {
        context.copy(part.ids, inputs.as<std::int32_t>() + stepInputs.ids.offset + part.token,
                     static_cast<std::uint64_t>(part.count) * sizeof(std::int32_t));
    }
}

} // namespace vitrine::engine
