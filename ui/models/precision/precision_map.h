// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Errors of a model's weights by role and layer. Pure functions over a result that nobody changes; any thread.

#include <QString>
#include <optional>
#include <string>
#include <vector>

#include "engine/workload/precision/precision_result.h"
#include "ui/models/precision/error_scale.h"

namespace vitrine::ui {

/// The weights of one role in one layer: one matrix, or those of all experts in their order.
struct PrecisionCell {
    std::vector<std::size_t> weights; ///< numbers in PrecisionResult::weights; empty: the layer has none of this role
};

struct PrecisionMap {
    std::vector<std::string> roles; ///< attention first, then the MLP, then the router
    int layers = 0;
    std::vector<PrecisionCell> cells; ///< role after role, each with all layers

    const PrecisionCell& cell(std::size_t role, int layer) const {
        return cells[role * static_cast<std::size_t>(layers) + static_cast<std::size_t>(layer)];
    }
    /// The most weights that a cell of this role has.
    std::size_t experts(std::size_t role) const;
};

/// Weights without a layer are in no cell, and so are those of layers from 4,096 on, which no model has.
PrecisionMap precisionMap(const engine::PrecisionResult& result);

/// Whether the error of a weight in a format is not known yet.
bool awaited(const engine::PrecisionResult& result, std::size_t format, std::size_t weight);
/// How many errors of a format are known, and how many there will be.
struct KnownErrors {
    std::size_t known = 0, all = 0;
};
KnownErrors knownErrors(const engine::PrecisionResult& result, std::size_t format);
/// The last format that some errors are known of: that which a run is at. firstFormat() where there is none.
std::size_t formatInWork(const engine::PrecisionResult& result);

/// Of one weight in one format. BF16 is exact. NaN: the format has no groups for this shape, or it is awaited.
float weightError(const engine::PrecisionResult& result, ErrorMeasure measure, std::size_t format, std::size_t weight);

/// The errors of the weights of a cell, in their order.
std::vector<float> cellErrors(const engine::PrecisionResult& result, ErrorMeasure measure, std::size_t format,
                              const PrecisionCell& cell);

/// The values of all cells, each the mean of its weights by squared errors; NaN where a cell is empty or not packable.
std::vector<float> cellMeans(const engine::PrecisionResult& result, const PrecisionMap& map, ErrorMeasure measure,
                             std::size_t format);

/// 1 where all weights of a cell stay BF16.
std::vector<std::uint8_t> keptCells(const engine::PrecisionResult& result, const PrecisionMap& map, std::size_t format);

/// The format that one looks at first: the first with four bits where there is one, else the first behind BF16; 0 where
/// there is no other.
std::size_t firstFormat(const engine::PrecisionResult& result);

/// The scale of a session: made from firstFormat(), and kept for all.
ErrorScale sessionScale(const engine::PrecisionResult& result, const PrecisionMap& map, ErrorMeasure measure);

/// The weight of a cell with the largest error; nothing in an empty cell.
std::optional<std::size_t> worstWeightOf(const engine::PrecisionResult& result, std::size_t format,
                                         const PrecisionCell& cell);

/// The worst weight of the cell with the largest mean error; nothing where no error is known.
std::optional<std::size_t> worstWeightOf(const engine::PrecisionResult& result, std::size_t format,
                                         const PrecisionMap& map);

struct CellBytes {
    std::uint64_t now = 0, bf16 = 0;
};
CellBytes cellBytes(const engine::PrecisionResult& result, std::size_t format, const PrecisionCell& cell);

/// "Layer 46, down: 17.24 dB over 128 experts, 108 MiB instead of 384 MiB in BF16"
QString cellWords(const engine::PrecisionResult& result, const PrecisionMap& map, ErrorMeasure measure,
                  std::size_t format, std::size_t role, int layer);
/// The weights whose name or title has the text in it, in their order.
std::vector<std::size_t> weightsNamed(const engine::PrecisionResult& result, const QString& text);
/// "Layer 46, down, expert 17"
QString weightTitle(const engine::LabWeight& weight);

} // namespace vitrine::ui
