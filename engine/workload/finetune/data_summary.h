// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a run trains on, in numbers and lists, before it starts: of the rows and sequences that the trainer gets.
//   used     rows of the file without those left out
//   tokens   of used rows, after the template, before any cut
//   lost     tokens behind the cut; kept = tokens - lost
//   trained  kept tokens that the model learns to predict
//   padding  positions of the sequences without a token
//   fill     kept tokens of the train part over sequences x length

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "engine/workload/finetune/prepared_data.h"
#include "kernels/program/block_mask.h"

namespace vitrine::engine {

/// A used row that is longer than a sequence.
struct CutRow {
    std::int64_t line = 0, tokens = 0;
    std::int64_t lost = 0, lostTrained = 0;
    std::int64_t keptTrained = 0; ///< 0: it keeps no answer, and no sequence takes it
    bool keepsEnd = false;
};

/// Rows whose length is from 2^(octave / 4) up to the next bin.
struct LengthBin {
    std::int64_t from = 0, to = 0; ///< tokens; `to` is not part of it
    std::int64_t rows = 0, tokens = 0;
};

struct SequenceTotals {
    std::int32_t tokens = 0, trained = 0;
    bool cut = false; ///< one of its rows is cut
};

struct DataSummary {
    std::int64_t rows = 0, used = 0, trainRows = 0, validationRows = 0;
    bool validationApart = false; ///< its rows are of another file and not among `used`
    bool inArray = false;         ///< the file is one array; "line" is the row's number in it
    bool stopped = false;         ///< reading ended before the file did
    std::int64_t unreadable = 0, noAnswer = 0, duplicates = 0, tooLong = 0; ///< left out
    std::vector<LeftOutRow> leftOut;                                        ///< the first kMostListedRows
    std::int64_t conversations = 0;                                         ///< used rows that are made of messages
    std::int64_t tokens = 0, templateTokens = 0, lost = 0, kept = 0, trained = 0;
    std::int64_t longestTokens = 0, longestLine = 0, medianTokens = 0;
    std::int64_t cutRows = 0, lostTrained = 0; ///< rows that are cut, and the trained ones of lost tokens
    std::vector<CutRow> cut;                   ///< by line, the first kMostListedRows
    std::int64_t keepNoAnswer = 0;
    std::int64_t endTrained = 0; ///< used rows whose last kept answer ends with a trained token that ends a turn
    std::int64_t endAsked = 0;   ///< used rows that keep an answer
    std::vector<LengthBin> lengths;
    std::int64_t length = 0, sequences = 0, validationSequences = 0;
    std::int64_t sequenceTokens = 0, sequenceTrained = 0, padding = 0;
    std::int64_t batch = 1, stepsOfEpoch = 0; ///< sequences of a step
    std::vector<SequenceTotals> all;

    std::int64_t leftOutRows() const { return rows - used; }
    double trainedShare() const; ///< of kept
    double lostShare() const;    ///< of tokens
    double fill() const;
};

/// `batch`: sequences of a step, over all of its micro-batches.
DataSummary summarizeData(const PreparedData& data, std::int64_t batch);
/// The sequences that a step of this experiment takes.
std::int64_t sequencesOfStep(const Experiment& experiment, std::int64_t sequences);
/// The fields of `vitrine data --json`.
nlohmann::json dataSummaryJson(const DataSummary& summary);
/// The same for people.
std::string dataSummaryText(const DataSummary& summary);
/// The lines of dataSummaryText() as a CSV file: what, value, note.
std::string dataSummaryCsv(const DataSummary& summary);

/// Neighbouring tokens with the same label.
struct LabelRun {
    std::int64_t begin = 0, count = 0;
    bool trained = false;
};

/// A row in its place in a sequence.
struct PlacedRow {
    std::int32_t row = 0;  ///< index of PreparedData::training
    std::int64_t line = 0; ///< of the file
    std::int64_t begin = 0, length = 0;
    bool cut = false;
    std::vector<LabelRun> labels; ///< over positions of the sequence, without gaps
};

struct SequenceLayout {
    std::int64_t tokens = 0, trained = 0, length = 0;
    std::vector<PlacedRow> rows;
};

/// Rows of a sequence from its first position on.
SequenceLayout sequenceLayout(const PreparedData& data, std::size_t sequence);
/// The blocks of its attention; `window` 0: layers that see the whole row.
kernels::BlockMask sequenceBlocks(const PreparedData& data, std::size_t sequence, std::int64_t window);

} // namespace vitrine::engine
