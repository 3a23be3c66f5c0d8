// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the Precision lab shows: a run of the workload `precision`, and one matrix of its model looked at closely. All
// structs are immutable snapshots; functions are pure and may be called on any thread.

#include <QString>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/stop.h"
#include "engine/workload/precision/precision_result.h"
#include "engine/workload/precision/tensor_detail.h"
#include "sessions/session_file.h"

namespace vitrine::ui {

inline constexpr int kTokensToScore = 1024; ///< what a run is offered that scored none

struct PrecisionData {
    engine::PrecisionResult result;
    std::string model;  ///< as the experiment names it: a folder, a file or ORG/NAME
    std::string folder; ///< absolute, of the model as the run found it; empty: it is one file, or not known
    std::string device; ///< as the run reported it
    bool live = false;  ///< the run goes on: errors of some matrices are not known yet, and no text is scored
    /// Tokens/s of decoding one sequence by format number, as done runs of the session measured them with a model that
    /// `convert` wrote from this one, or with this model itself for BF16; nothing: not measured.
    std::vector<std::optional<double>> measuredRates;
    /// What this run would have taken with kTokensToScore tokens scored in each format; nothing: unknown.
    std::optional<double> secondsToScore;
};
using PrecisionDataPtr = std::shared_ptr<const PrecisionData>;

/// Null when the run is none of `precision`, is neither done nor going on, or its metrics say nothing yet or are
/// damaged. `all` are the runs of its session.
PrecisionDataPtr precisionData(const sessions::RunInfo& run, const std::vector<sessions::RunInfo>& all);

/// The number of the format that the weights of a model have: of a folder that a done run of `convert` wrote from the
/// lab's model, or BF16 for that model itself. Nothing: neither is so.
std::optional<std::size_t> formatOfModel(const PrecisionData& data, const std::vector<sessions::RunInfo>& all,
                                         const std::string& model);

/// What the lab knows of one matrix. With an error everything else is empty.
struct PrecisionTensor {
    QString error; ///< one sentence, for example that the model's files are gone; empty: none
    engine::TensorDetail detail;
    engine::GroupDetail worstGroup; ///< that with the largest RMS error
    std::vector<engine::FormatChoice> formats;
};
/// One group of it; an error as in PrecisionTensor.
struct PrecisionGroup {
    QString error;
    engine::GroupDetail detail;
};

/// Looks at matrices in the model's files: on a worker thread (ui/models/common/question_thread.h). It keeps the matrix
/// that it read last, so that its groups and formats are there at once: four bytes for each weight. One thread at a
/// time. Functions throw Cancelled and say what else is wrong in `error`. `weight` is a number in
/// PrecisionResult::weights, `format` one in formats and not that of BF16.
class TensorFiles {
public:
    TensorFiles();
    ~TensorFiles();
    TensorFiles(const TensorFiles&) = delete; // matrices are large
    TensorFiles& operator=(const TensorFiles&) = delete;

    /// In the formats of the run; others come from withOtherFormats().
    std::shared_ptr<const PrecisionTensor> tensor(const PrecisionData& data, std::size_t weight, std::size_t format,
                                                  const base::StopToken& stop);
    /// The same with the usual formats that the run did not have, which takes longer.
    std::shared_ptr<const PrecisionTensor> withOtherFormats(const PrecisionData& data, std::size_t weight,
                                                            const PrecisionTensor& tensor, const base::StopToken& stop);
    std::shared_ptr<const PrecisionGroup> group(const PrecisionData& data, std::size_t weight, std::size_t format,
                                                std::int64_t group, const base::StopToken& stop);

private:
    template <class Result, class Look>
    std::shared_ptr<const Result> looked(const PrecisionData& data, const Look& look);

    std::string place_; ///< of the model that lab_ has open
    base::ThreadPool pool_;
    std::unique_ptr<engine::TensorLab> lab_;
};

} // namespace vitrine::ui
