// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/finetune/data_summary.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/training/passes/document_mask.h"

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
    explicit RowSums(DataSummary& out) : out_(out) {}

    void add(const RowFacts& row, std::int64_t length) {
        const std::int64_t kept = row.kept(length);
        out_.tokens += row.tokens;
        out_.kept += kept;
        out_.trained += row.trained;
        if (row.tokens > out_.longestTokens) {
            out_.longestTokens = row.tokens;
            out_.longestLine = row.line;
        }
        if (kept < row.tokens) {
            addCut(row, kept);
        }
        if (row.trained > 0) {
            ++out_.endAsked;
            out_.endTrained += row.endTrained ? 1 : 0;
        }
        LengthBin& bin = bins_[lengthBin(row.tokens)];
        ++bin.rows;
        bin.tokens += row.tokens;
        ++lengths_[row.tokens];
    }

    void finish() {
        out_.lost = out_.tokens - out_.kept;
        std::sort(out_.cut.begin(), out_.cut.end(),
                  [](const CutRow& one, const CutRow& other) { return one.line < other.line; });
        std::int64_t rows = 0, before = 0;
        for (auto& [number, bin] : bins_) {
            bin.from = beginOfBin(number);
            bin.to = beginOfBin(number + 1);
            out_.lengths.push_back(bin);
            rows += bin.rows;
        }
        for (const auto& [tokens, count] : lengths_) {
            before += count;
            if (before > (rows - 1) / 2) {
                out_.medianTokens = tokens;
                break;
            }
        }
    }

private:
    void addCut(const RowFacts& row, std::int64_t kept) {
        const std::int64_t lostTrained = std::int64_t{row.trainedWhole} - row.trained;
        ++out_.cutRows;
        out_.lostTrained += lostTrained;
        out_.keepNoAnswer += row.trained == 0 ? 1 : 0;
        if (out_.cut.size() < kMostListedRows) {
            out_.cut.push_back({row.line, row.tokens, row.tokens - kept, lostTrained, row.trained, row.keepsEnd});
        }
    }

    DataSummary& out_;
    std::map<int, LengthBin> bins_;
    std::map<std::uint32_t, std::int64_t> lengths_; ///< rows by their tokens
};

void addSequences(const PreparedData& data, DataSummary& out) {
    out.length = data.length;
    out.sequences = static_cast<std::int64_t>(data.packed.size());
    out.validationSequences = std::ranges::count_if(data.held, [](const RowFacts& row) { return row.trained > 0; });
    for (std::size_t i = 0; i < data.packed.size(); ++i) {
        SequenceTotals totals;
        for (const std::int32_t index : data.packed.sequence(i)) {
            const RowFacts& row = data.training[static_cast<std::size_t>(index)];
            totals.tokens += static_cast<std::int32_t>(row.kept(data.length));
            totals.trained += static_cast<std::int32_t>(row.trained);
            totals.cut = totals.cut || row.kept(data.length) < row.tokens;
        }
        out.sequenceTokens += totals.tokens;
        out.sequenceTrained += totals.trained;
        out.all.push_back(totals);
    }
    out.padding = out.sequences * out.length - out.sequenceTokens;
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
    out.inArray = data.inArray;
    out.stopped = data.stopped;
    out.leftOut = data.leftOut;
    out.trainRows = static_cast<std::int64_t>(data.training.size());
    out.validationRows = static_cast<std::int64_t>(data.held.size());
    out.validationApart = data.heldApart;
    const auto leftOut = [&](LeftOutReason reason) { return data.leftOutCounts[static_cast<std::size_t>(reason)]; };
    out.unreadable = leftOut(LeftOutReason::Unreadable);
    out.noAnswer = leftOut(LeftOutReason::NoAnswer);
    out.duplicates = leftOut(LeftOutReason::Duplicate);
    out.tooLong = leftOut(LeftOutReason::TooLong);
    out.conversations = data.conversations;
    out.templateTokens = data.templateTokens;
    RowSums sums(out);
    for (const RowFacts& row : data.training) {
        sums.add(row, data.length);
    }
    out.used = out.trainRows;
    if (!data.heldApart) {
        for (const RowFacts& row : data.held) {
            sums.add(row, data.heldLength);
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
    SequenceLayout out;
    out.length = data.length;
    for (const std::int32_t index : data.packed.sequence(sequence)) {
        const TrainingRow row = data.row(index);
        const KeptTokens kept = keptTokens(row, data.length);
        PlacedRow placed{index, row.line, out.tokens, kept.count, false, {}};
        placed.cut = std::cmp_less(kept.count, row.tokens.size());
        for (std::int64_t at = 0; at < kept.count; ++at) {
            // The first token of a document cannot be predicted.
            const bool trained = at > 0 && row.trained[static_cast<std::size_t>(kept.begin + at)] != 0;
            if (placed.labels.empty() || placed.labels.back().trained != trained) {
                placed.labels.push_back({out.tokens + at, 0, trained});
            }
            ++placed.labels.back().count;
            out.trained += trained ? 1 : 0;
        }
        out.tokens += kept.count;
        out.rows.push_back(std::move(placed));
    }
    return out;
}

kernels::BlockMask sequenceBlocks(const PreparedData& data, std::size_t sequence, std::int64_t window) {
    std::vector<std::int32_t> lengths;
    for (const std::int32_t index : data.packed.sequence(sequence)) {
        lengths.push_back(static_cast<std::int32_t>(data.training[static_cast<std::size_t>(index)].kept(data.length)));
    }
    return documentBlocks(lengths, window);
}

} // namespace vitrine::engine
