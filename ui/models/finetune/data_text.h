// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the page of the data says: its sentence, what stands beside fields, its readouts.

#include <QString>
#include <optional>
#include <vector>

#include "ui/models/common/flat_tree.h"
#include "ui/models/finetune/data_set.h"

namespace vitrine::ui {

enum class SentenceTone : std::uint8_t { Plain, Strong, Warn, Bad };

struct SentencePart {
    QString text;
    SentenceTone tone = SentenceTone::Plain;
};
using SentenceParts = std::vector<SentencePart>;
QString plainText(const SentenceParts& sentence);

/// "12,470 of 12,480 rows are used; 7 are cut at 32,768 tokens and lose 41,208 tokens (0.4 %); 38 % of all tokens ..."
SentenceParts dataSentence(const DataSet& set);
/// What becomes of the rows, and what is left out and why.
QString dataSecondLine(const DataSet& set);
/// "Read 4,100 of about 12,480 rows: 4,093 are used."
SentenceParts readingSentence(const DataCounts& counts);

/// What the number of a row counts: "Line", or "Row" where the file is one array. `small`: within a sentence.
QString placeWord(const engine::DataSummary& summary, bool small = false);

/// "chat, messages", "text", "tokens": what the lines of the file are.
QString rowKindText(const DataSet& set);
/// "1,780 tokens, 904 trained in 4 answers".
QString rowFacts(const RowTokens& row);
/// "11 rows, 31,501 tokens, 24.7 % trained, 1,267 padding".
QString sequenceFacts(const engine::SequenceLayout& layout);
/// Of the status bar: number, text, id, trained or why not, places in row and sequence.
QString tokenReadout(const RowTokens& row, std::int64_t token);
/// What assistive technology says of a token: "Row 8,324. Token 122, credit. Trained. Answer 1 of 4."
QString tokenSpoken(const RowTokens& row, std::int64_t token);

/// Lines that were left out for a reason, with what is known of each.
std::vector<const engine::LeftOutRow*> leftOutFor(const engine::DataSummary& summary, engine::LeftOutReason reason);
std::int64_t leftOutCount(const engine::DataSummary& summary, engine::LeftOutReason reason);
QString leftOutName(engine::LeftOutReason reason); ///< "duplicates", of lists

/// Which rows a table shows. Without any choice: every row that is not used whole.
struct RowFilter {
    std::optional<engine::LeftOutReason> leftOut; ///< those that were left out for this reason
    bool cut = false;                             ///< those that are cut
    std::int64_t from = 0, to = 0;                ///< used rows of [from, to) tokens; `to` 0: of any length

    bool any() const { return leftOut || cut || to > 0; }
};
/// "duplicates", "4,096 to 4,870 tokens"; empty without a choice.
QString filterText(const RowFilter& filter);
/// Line, what, tokens, lost, why, of at most 10,000 rows; a last row says how many more there are.
FlatTreePtr rowsTable(const DataSet& set, const RowFilter& filter);

} // namespace vitrine::ui
