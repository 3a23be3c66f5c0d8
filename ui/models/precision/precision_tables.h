// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Tables and sentences of the Precision lab. Pure functions; any thread.

#include <QString>
#include <vector>

#include "ui/models/common/flat_tree.h"
#include "ui/models/precision/precision_data.h"
#include "ui/models/precision/precision_map.h"

namespace vitrine::ui {

/// Whole models: bits, GiB, KL, top-1 and tokens/s, planned and measured. A row for each format, in their order.
FlatTreePtr formatTable(const PrecisionData& data);
/// A row for each of the worst groups, largest error first; its key is the group's number.
FlatTreePtr worstGroupTable(const engine::TensorDetail& detail);
/// The matrix in other formats, from the most bits to the least; the row of `title` is emphasized.
FlatTreePtr choiceTable(const PrecisionTensor& tensor, const QString& title);
/// Where the squared error of the matrix lies.
FlatTreePtr errorPlaceTable(const engine::TensorDetail& detail);
/// The twin of the whole view: each role and layer with its errors, bytes and whether it is kept.
FlatTreePtr mapTable(const engine::PrecisionResult& result, const PrecisionMap& map, std::size_t format);

/// "[2048, 768]   SNR 17.11 dB   cosine 0.99041   largest error 0.0347   clipped 0"
/// All that the inspector says of a matrix, as Markdown; `title` is that of the format.
QString tensorMarkdown(const PrecisionTensor& tensor, const QString& title);
QString tensorWords(const engine::TensorDetail& detail);
/// "Embedding, head, router and norms stay BF16: 1.18 GiB in each row."
/// "Rule: s = max(|w|) / 7.5, q = round(w / s), −8 to 7" of a format by its name; empty for BF16 and unknown ones.
QString ruleWords(const std::string& format);
QString keptNote(const engine::PrecisionResult& result);

} // namespace vitrine::ui
