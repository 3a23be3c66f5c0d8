// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/score/scored_rows.h"

#include <algorithm>
#include <iterator>

#include "engine/checkpoint/output_check.h"
#include "engine/training/data/training_rows.h"
#include "engine/workload/common/row_options.h"

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

/// Rows of text with a token that counts, as rollouts. The answer goes from the first to the last one that counts, so
/// tokens in between may not count, as questions in a conversation do not.
struct TextAnswers {
    Rollouts rollouts;
    std::vector<std::int64_t> numbers; ///< of each row: of its row in the file

    void add(const TrainingRow& row, std::int64_t number);
};

void TextAnswers::add(const TrainingRow& row, std::int64_t number) {
    const auto first = std::find(row.trained.begin() + 1, row.trained.end(), 1); // nothing is before the first token
    if (first == row.trained.end()) {
        return;
    }
    const auto end = std::find(row.trained.rbegin(), row.trained.rend(), 1).base();
    rollouts.promptLengths.push_back(static_cast<std::int32_t>(first - row.trained.begin()));
    rollouts.lengths.push_back(static_cast<std::int32_t>(end - row.trained.begin()));
    rollouts.ids.insert(rollouts.ids.end(), row.tokens.begin(), row.tokens.end());
    rollouts.ids.resize(static_cast<std::size_t>(++rollouts.rows * rollouts.width));
    rollouts.advantages.push_back(0);
    numbers.push_back(number);
}

ScoredRows textRows(const Run& run, const ModelSource& source) {
    const std::vector<TrainingRow> rows =
        readTrainingRows(run.spec.text("data"), rowOptions(run, source), run.stop, run.sinks.progress);
    ScoredRows out;
    out.rows = std::ssize(rows);
    for (const TrainingRow& row : rows) {
        out.width = std::max<std::int64_t>(out.width, std::ssize(row.tokens));
    }
    out.ids.resize(static_cast<std::size_t>(out.rows * out.width));
    TextAnswers answers;
    answers.rollouts.width = out.width;
    for (std::int64_t number = 0; number < out.rows; ++number) {
        const TrainingRow& row = rows[static_cast<std::size_t>(number)];
        std::ranges::copy(row.tokens, out.ids.begin() + static_cast<std::ptrdiff_t>(number * out.width));
        out.lengths.push_back(static_cast<std::int32_t>(row.tokens.size()));
        answers.add(row, number);
    }
    out.batches = policyBatches(answers.rollouts, batchOptions(run));
    for (std::vector<std::int64_t>& places : out.batches.places) {
        for (std::int64_t& place : places) {
            if (place >= 0) {
                const std::int64_t number = answers.numbers[static_cast<std::size_t>(place / out.width)];
                const std::int64_t token = place % out.width;
                const TrainingRow& row = rows[static_cast<std::size_t>(number)];
                place = row.trained[static_cast<std::size_t>(token)] != 0 ? number * out.width + token : -1;
            }
        }
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
