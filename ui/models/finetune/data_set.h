// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The data of a fine-tuning run before it starts, as the trainer will get them, and parts of them to look at: a packed
// sequence, the tokens of a row. Tokens are read again from the file, so that functions that need them belong on a
// worker; all functions may be called there.

#include <QString>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/stop.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/finetune/data_summary.h"
#include "ui/models/finetune/mask_picture.h"
#include "ui/models/finetune/token_lines.h"

namespace vitrine::ui {

struct DataSet {
    engine::PreparedData data;
    engine::DataSummary summary;
    std::vector<std::int64_t> windows; ///< the kinds of layers: 0 sees the whole row; ascending
    std::uint64_t fileBytes = 0;
    double seconds = 0; ///< that reading took
};
using DataSetPtr = std::shared_ptr<const DataSet>;

/// What was read so far.
struct DataCounts {
    std::int64_t rows = 0, used = 0, noAnswer = 0, duplicates = 0, unreadable = 0;
    std::int64_t expectedRows = 0; ///< of the whole file, by its size; 0: not known
};

/// Reads the data that an experiment names. `counted` hears at times how far it is, and `enough` ends the reading; what
/// was read is then all. Throws what engine::prepareData() throws.
DataSetPtr readDataSet(const engine::Experiment& experiment, const base::StopToken& stop,
                       const std::function<void(const DataCounts&)>& counted, const std::function<bool()>& enough);

struct SequencePicture {
    std::int64_t index = -1;
    engine::SequenceLayout layout;
    std::vector<MaskPicture> masks; ///< one for each of DataSet::windows
    QString problem;                ///< why its rows cannot be read again; else empty
};
SequencePicture sequencePicture(const DataSet& set, std::int64_t index);

struct TurnSpan {
    QString role; ///< "user", "assistant"
    std::int64_t begin = 0, end = 0;
    std::int64_t trained = 0;
};

struct RowTokens {
    std::int64_t row = -1, line = 0;      ///< index of PreparedData::training
    std::int64_t sequence = 0, place = 0; ///< where its first kept token stands
    std::int64_t keptBegin = 0, keptEnd = 0, trained = 0;
    std::vector<TokenCell> cells;
    std::vector<std::int32_t> ids;
    std::vector<TokenKind> kinds;
    std::vector<std::uint8_t> special; ///< for each token
    std::vector<TurnSpan> turns;       ///< empty: the row is no conversation
    int answers = 0;
    QString problem; ///< why it cannot be read again; else empty

    std::int64_t tokens() const { return static_cast<std::int64_t>(ids.size()); }
};
RowTokens rowTokens(const DataSet& set, const engine::PlacedRow& row, std::int64_t sequence);

/// A line as it is in the file of the data, at most `most` characters; empty where it cannot be read.
QString rawLine(const DataSet& set, std::int64_t line, qsizetype most);

/// Which sequence has the row of a line, and which of its rows that is; {-1, -1}: none.
std::pair<std::int64_t, std::int64_t> placeOfLine(const DataSet& set, std::int64_t line);

} // namespace vitrine::ui
