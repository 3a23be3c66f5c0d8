// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/finetune/data_summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "engine/training/chat_mask.h"
#include "engine/training/document_mask.h"

namespace vitrine::engine {

namespace {

constexpr double kBinsOfAnOctave = 4;

double shareOf(std::int64_t part, std::int64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

int lengthBin(std::int64_t tokens) {
    return static_cast<int>(std::floor(std::log2(static_cast<double>(tokens)) * kBinsOfAnOctave + 1e-9));
}

/// The least number of tokens in a bin.
std::int64_t beginOfBin(int bin) {
    return static_cast<std::int64_t>(std::ceil(std::exp2(bin / kBinsOfAnOctave) - 1e-6));
}

/// Goes through used rows and adds up.
class RowSums {
public:
    RowSums(const PreparedData& data, DataSummary& out)
        : data_(data), out_(out),
          ends_(data.format != nullptr ? answerEnds(data.format->kind(), *data.tokenizer) : data.eosTokens) {
        ends_.insert(ends_.end(), data.eosTokens.begin(), data.eosTokens.end());
    }

    void add(const TrainingRow& row) {
        const auto tokens = static_cast<std::int64_t>(row.tokens.size());
        const KeptTokens kept = keptTokens(row, data_.length);
        const std::int64_t trained = trainedTokens(row, kept);
        out_.tokens += tokens;
        out_.templateTokens += row.templateTokens;
        out_.conversations += row.conversation ? 1 : 0;
        out_.kept += kept.count;
        out_.trained += trained;
        if (tokens > out_.longestTokens) {
            out_.longestTokens = tokens;
            out_.longestLine = row.line;
        }
        if (kept.count < tokens) {
            out_.cut.push_back({row.line, tokens, tokens - kept.count, trainedTokens(row, {0, tokens}) - trained,
                                trained, row.keepsEnd});
            out_.keepNoAnswer += trained == 0 ? 1 : 0;
        }
        if (trained > 0) {
            ++out_.endAsked;
            out_.endTrained += endsTrained(row, kept) ? 1 : 0;
        }
        LengthBin& bin = bins_[lengthBin(tokens)];
        ++bin.rows;
        bin.tokens += tokens;
        lengths_.push_back(tokens);
    }

    void finish() {
        out_.lost = out_.tokens - out_.kept;
        std::sort(out_.cut.begin(), out_.cut.end(),
                  [](const CutRow& one, const CutRow& other) { return one.line < other.line; });
        for (auto& [number, bin] : bins_) {
            bin.from = beginOfBin(number);
            bin.to = beginOfBin(number + 1);
            out_.lengths.push_back(bin);
        }
        if (!lengths_.empty()) {
            const auto middle = lengths_.begin() + static_cast<std::ptrdiff_t>((lengths_.size() - 1) / 2);
            std::nth_element(lengths_.begin(), middle, lengths_.end());
            out_.medianTokens = *middle;
        }
    }

private:
    /// Whether an answer that is whole ends with a token after which the model stops, and that token is trained.
    bool endsTrained(const TrainingRow& row, const KeptTokens& kept) const {
        for (std::int64_t i = kept.begin + 1; i < kept.begin + kept.count; ++i) {
            const auto at = static_cast<std::size_t>(i);
            if (row.trained[at] != 0 && std::find(ends_.begin(), ends_.end(), row.tokens[at]) != ends_.end()) {
                return true;
            }
        }
        return false;
    }

    const PreparedData& data_;
    DataSummary& out_;
    std::vector<std::int32_t> ends_;
    std::map<int, LengthBin> bins_;
    std::vector<std::int64_t> lengths_;
};

std::int64_t countOf(const PreparedData& data, LeftOutReason reason) {
    return std::count_if(data.leftOut.begin(), data.leftOut.end(),
                         [reason](const LeftOutRow& row) { return row.reason == reason; });
}

void addSequences(const PreparedData& data, DataSummary& out) {
    out.length = data.length;
    out.sequences = static_cast<std::int64_t>(data.packed.sequences.size());
    out.validationSequences = static_cast<std::int64_t>(data.heldPacked.sequences.size());
    out.sequenceTokens = data.packed.totalTokens;
    out.sequenceTrained = data.packed.trainedTokens;
    out.padding = out.sequences * out.length - out.sequenceTokens;
    for (const PackedSequence& sequence : data.packed.sequences) {
        const bool cut = std::any_of(sequence.rows.begin(), sequence.rows.end(), [&](std::int32_t row) {
            return std::cmp_greater(data.training[static_cast<std::size_t>(row)].tokens.size(), data.length);
        });
        out.all.push_back({static_cast<std::int64_t>(sequence.tokens.size()), sequence.predicted(), cut});
    }
}

} // namespace

double DataSummary::trainedShare() const {
    return shareOf(trained, kept);
}

double DataSummary::lostShare() const {
    return shareOf(lost, tokens);
}

double DataSummary::fill() const {
    return shareOf(sequenceTokens, sequences * length);
}

DataSummary summarizeData(const PreparedData& data, std::int64_t batch) {
    DataSummary out;
    out.rows = data.fileRows;
    out.stopped = data.stopped;
    out.leftOut = data.leftOut;
    out.trainRows = static_cast<std::int64_t>(data.training.size());
    out.validationRows = static_cast<std::int64_t>(data.held.size());
    out.validationApart = data.heldApart;
    out.unreadable = countOf(data, LeftOutReason::Unreadable);
    out.noAnswer = countOf(data, LeftOutReason::NoAnswer);
    out.duplicates = countOf(data, LeftOutReason::Duplicate);
    out.tooLong = countOf(data, LeftOutReason::TooLong);
    RowSums sums(data, out);
    for (const TrainingRow& row : data.training) {
        sums.add(row);
    }
    out.used = out.trainRows;
    if (!data.heldApart) {
        for (const TrainingRow& row : data.held) {
            sums.add(row);
        }
        out.used += out.validationRows;
    }
    sums.finish();
    addSequences(data, out);
    out.batch = std::max<std::int64_t>(1, batch);
    out.stepsOfEpoch = (out.sequences + out.batch - 1) / out.batch;
    return out;
}

std::int64_t sequencesOfStep(const Experiment& experiment, std::int64_t sequences) {
    const bool whole = experiment.text("data").empty() && !experiment.text("tokens_file").empty();
    return experiment.maybeInteger("batch").value_or(whole ? sequences : 1) * experiment.integer("accumulate");
}

SequenceLayout sequenceLayout(const PreparedData& data, std::size_t sequence) {
    const PackedSequence& packed = data.packed.sequences.at(sequence);
    SequenceLayout out;
    out.length = data.length;
    out.tokens = static_cast<std::int64_t>(packed.tokens.size());
    out.trained = packed.predicted();
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < packed.rows.size(); ++i) {
        const TrainingRow& row = data.training[static_cast<std::size_t>(packed.rows[i])];
        PlacedRow placed{packed.rows[i], row.line, begin, packed.lengths[i], false, {}};
        placed.cut = std::cmp_less(placed.length, row.tokens.size());
        for (std::int64_t at = begin; at < begin + placed.length; ++at) {
            // The target of the token before says whether the model learns to predict this one.
            const bool trained = at > begin && packed.targets[static_cast<std::size_t>(at - 1)] >= 0;
            if (placed.labels.empty() || placed.labels.back().trained != trained) {
                placed.labels.push_back({at, 0, trained});
            }
            ++placed.labels.back().count;
        }
        begin += placed.length;
        out.rows.push_back(std::move(placed));
    }
    return out;
}

kernels::BlockMask sequenceBlocks(const PreparedData& data, std::size_t sequence, std::int64_t window) {
    return documentBlocks(data.packed.sequences.at(sequence).lengths, window);
}

} // namespace vitrine::engine
