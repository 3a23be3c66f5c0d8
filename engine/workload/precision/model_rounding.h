// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Rounds the matrices of a model to formats, measures what each loses, and puts the rounded values into a loaded dense
// model in place of its own. So a format's effect is measured without writing a model: one matrix at a time is in host
// memory. The loaded model holds the rounded values in its own type, BF16 mostly, as kernels for packed weights expand
// them too.

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/stop.h"
#include "engine/model/model.h"
#include "engine/workload/convert/weight_reader.h"
#include "engine/workload/precision/lab_weights.h"
#include "engine/workload/precision/precision_result.h"

namespace vitrine::engine {

/// Puts values into the weights of a loaded model. Belongs to the thread of the model's context. The model outlives it.
class WeightWriter {
public:
    /// REQUIRES a model without packed weights. Kept weights are no longer those of the files from now on.
    explicit WeightWriter(Model& model);

    /// `values` (out, in). Throws Internal when the model has no weight of that name.
    void write(const LabMatrix& matrix, std::span<const float> values);

private:
    Model& model_;
    std::map<std::string, kernels::WeightView, std::less<>> weights_;
};

/// Belongs to one thread. Source and pool outlive it.
class ModelRounding {
public:
    /// `ignored`: modules that stay BF16 (engine/quant/module_pattern.h). REQUIRES a source with files.
    ModelRounding(const ModelSource& source, std::vector<PrecisionFormat> formats, std::vector<std::string> ignored,
                  base::ThreadPool& pool);

    const std::vector<PrecisionFormat>& formats() const { return formats_; }
    /// The formats, weights and sizes, as far as they are known before anything is read. Effects have no errors.
    PrecisionResult emptyResult() const;

    /// Measures the errors of the matrices in format number `format` (not 0) and writes them to `result`, which
    /// emptyResult() made. With a writer, the model gets the rounded values of those that are not kept, and its own of
    /// the others. Reports progress by values; `progress` may be null. Calls `measured` after each matrix, when
    /// `result` has its errors. Throws BadInput "FILE: TENSOR: what", Cancelled.
    void round(std::size_t format, PrecisionResult& result, WeightWriter* writer, const base::StopToken& stop,
               base::ProgressSink* progress, const std::function<void()>& measured);
    /// Puts the weights of a part that the format packs into the model again: rounded, or with their own values.
    void putPart(std::size_t format, const KeepPart& part, bool rounded, WeightWriter& writer,
                 const base::StopToken& stop);
    /// Whether the matrix stays BF16 in format number `format`.
    bool keeps(std::size_t format, std::size_t matrix) const;
    const std::vector<LabMatrix>& matrices() const { return matrices_; }

private:
    /// Sets the effect's error and returns the values of the rounded matrix, which are empty unless they are `wanted`.
    std::vector<float> roundOne(std::size_t format, const LabMatrix& matrix, std::span<const float> values, bool wanted,
                                WeightEffect& effect);

    const ModelSource& source_;
    std::vector<PrecisionFormat> formats_;
    std::vector<LabMatrix> matrices_;
    std::vector<bool> ignored_; ///< of the matrices
    base::ThreadPool& pool_;
    WeightReader reader_;
};

} // namespace vitrine::engine
