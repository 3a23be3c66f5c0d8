// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/score/scored_rows.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/checkpoint/output_check.h"
#include "engine/training/data/packing.h"
#include "engine/training/data/training_rows.h"
#include "engine/workload/experiment/workloads.h"
#include "engine/workload/finetune/prepared_data.h"

namespace vitrine::engine {

namespace {

constexpr const char* kEntropies = "entropies";
constexpr std::size_t kCopyBytes = std::size_t{16} << 20;

PolicyBatchOptions batchOptions(const Run& run) {
    PolicyBatchOptions out;
    out.sharePrompts = run.spec.flag("share_prompts");
    out.rows = run.spec.maybeInteger("batch").value_or(0);
    return out;
}

ScoredRows tensorRows(const Run& run, const ModelSource& source) {
    const Rollouts rollouts = readRows(run.spec.text("data"), source.config.vocab);
    ScoredRows out;
    out.rows = rollouts.rows;
    out.width = rollouts.width;
    out.ids = rollouts.ids;
    out.lengths = rollouts.lengths;
    out.batches = policyBatches(rollouts, batchOptions(run));
    return out;
}

/// Rows as finetune reads them, each by itself.
std::vector<PackedSequence> textSequences(const Run& run, const ModelSource& source) {
    Experiment spec = run.spec.as(kFinetuneWorkload);
    spec.set("duplicates", std::string("keep"));
    spec.set("pack", false);
    PrepareWatch watch;
    watch.keepTokens = true;
    const PreparedData data = prepareData(Run{spec, run.sinks, run.stop, run.metrics}, source, watch);
    return packRows(data.trainingTokens, data.packing()).sequences;
}

/// Adds a row to the last micro-batch, or to a new one where it has no room.
void addSequence(PolicyBatches& to, const PackedSequence& sequence, std::int64_t firstPlace,
                 const PolicyBatchOptions& options) {
    const bool full = !to.batches.empty() &&
                      (options.rows > 0 ? std::cmp_greater_equal(to.batches.back().lengths.size(), options.rows)
                                        : to.batches.back().count() + sequence.count() > options.tokens);
    if (to.batches.empty() || full) {
        to.batches.emplace_back();
        to.places.emplace_back();
    }
    to.batches.back().append(sequence);
    for (std::size_t token = 0; token < sequence.targets.size(); ++token) {
        // A token is scored where it stands, one after the token that predicts it.
        to.places.back().push_back(sequence.targets[token] < 0 ? -1
                                                               : firstPlace + static_cast<std::int64_t>(token) + 1);
    }
}

ScoredRows textRows(const Run& run, const ModelSource& source) {
    const std::vector<PackedSequence> sequences = textSequences(run, source);
    ScoredRows out;
    out.rows = static_cast<std::int64_t>(sequences.size());
    for (const PackedSequence& sequence : sequences) {
        out.width = std::max(out.width, sequence.count());
    }
    out.ids.resize(static_cast<std::size_t>(out.rows * out.width));
    const PolicyBatchOptions options = batchOptions(run);
    for (std::int64_t row = 0; row < out.rows; ++row) {
        const PackedSequence& sequence = sequences[static_cast<std::size_t>(row)];
        std::ranges::copy(sequence.tokens, out.ids.begin() + static_cast<std::ptrdiff_t>(row * out.width));
        out.lengths.push_back(static_cast<std::int32_t>(sequence.count()));
        addSequence(out.batches, sequence, row * out.width, options);
    }
    return out;
}

/// The bytes of a tensor, piece by piece.
void copyTensor(const SafetensorsFile& from, const TensorEntry& tensor, SafetensorsWriter& to) {
    std::vector<std::byte> piece(std::min<std::uint64_t>(tensor.bytes, kCopyBytes));
    for (std::uint64_t done = 0; done < tensor.bytes; done += piece.size()) {
        const std::uint64_t count = std::min<std::uint64_t>(piece.size(), tensor.bytes - done);
        from.read(tensor, done, piece.data(), count);
        to.write(piece.data(), count);
    }
}

template <class Number> void writeValues(SafetensorsWriter& to, const std::vector<Number>& values) {
    to.write(values.data(), values.size() * sizeof(Number));
}

} // namespace

ScoredRows readScoredRows(const Run& run, const ModelSource& source) {
    const bool tensors = isTensorFile(run.spec.text("data"));
    ScoredRows out = tensors ? tensorRows(run, source) : textRows(run, source);
    out.file = run.spec.text("data");
    out.fromTensors = tensors;
    return out;
}

RowScores rowScores(const ScoredRows& rows, const LogProbObjective& scores) {
    const auto size = static_cast<std::size_t>(rows.rows * rows.width);
    RowScores out{std::vector<float>(size), std::vector<float>(size), std::vector<std::int32_t>(size)};
    for (std::size_t batch = 0; batch < rows.batches.places.size(); ++batch) {
        const TokenScores of = scores.scores(static_cast<std::int64_t>(batch));
        for (std::size_t token = 0; token < rows.batches.places[batch].size(); ++token) {
            if (const std::int64_t place = rows.batches.places[batch][token]; place >= 0) {
                out.logProbs[static_cast<std::size_t>(place)] = of.logProbs[token];
                out.entropies[static_cast<std::size_t>(place)] = of.entropies[token];
                out.scored[static_cast<std::size_t>(place)] = 1;
            }
        }
    }
    return out;
}

void writeScores(const Run& run, const ScoredRows& rows, const RowScores& scores) {
    const std::string name = run.spec.text("score_tensor");
    const std::vector<std::int64_t> shape = {rows.rows, rows.width};
    std::vector<TensorSpec> specs;
    std::vector<TensorEntry> copied;
    std::shared_ptr<const SafetensorsFile> file;
    if (rows.fromTensors) {
        file = SafetensorsFile::open(rows.file);
        for (const TensorEntry& tensor : file->tensors()) {
            if (tensor.name != name && tensor.name != kEntropies) {
                specs.push_back({tensor.name, tensor.dtype, tensor.shape});
                copied.push_back(tensor);
            }
        }
    } else {
        specs.push_back({"input_ids", kernels::DType::I32, shape});
        specs.push_back({"lengths", kernels::DType::I32, {rows.rows}});
        specs.push_back({"scored", kernels::DType::I32, shape});
    }
    specs.push_back({name, kernels::DType::F32, shape});
    specs.push_back({kEntropies, kernels::DType::F32, shape});
    const auto writer = SafetensorsWriter::create(run.spec.text("output"), specs, madeBy(kScoresOutput));
    for (const TensorEntry& tensor : copied) {
        copyTensor(*file, tensor, *writer);
    }
    if (!rows.fromTensors) {
        writeValues(*writer, rows.ids);
        writeValues(*writer, rows.lengths);
        writeValues(*writer, scores.scored);
    }
    writeValues(*writer, scores.logProbs);
    writeValues(*writer, scores.entropies);
    writer->finish();
}

} // namespace vitrine::engine
