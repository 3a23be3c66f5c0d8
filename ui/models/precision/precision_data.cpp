// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/precision/precision_data.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_values.h"
#include "engine/quant/conversion_target.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/experiment/workload_table.h"

namespace vitrine::ui {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kView = "precision";

bool sameRounding(const engine::PrecisionFormat& format, const engine::Experiment& convert) {
    std::optional<engine::Quantization> target;
    try {
        target =
            engine::conversionTarget(convert.text("to"), convert.maybeInteger("group_size"),
                                     convert.has("symmetric") ? std::optional(convert.flag("symmetric")) : std::nullopt,
                                     convert.has("int4_rule") ? convert.text("int4_rule") : std::string());
    } catch (const base::BadInput&) {
        return false; // an experiment of another version
    }
    if (!target || !format.quantization) {
        return !target && !format.quantization;
    }
    return target->packing == format.quantization->packing && target->symmetric == format.quantization->symmetric;
}

/// The formats of a result. One that this version does not know has no quantization.
std::vector<engine::PrecisionFormat> formatsOf(const engine::PrecisionResult& result) {
    std::vector<engine::PrecisionFormat> formats;
    for (const engine::FormatEffect& effect : result.formats) {
        try {
            formats.push_back(engine::precisionFormat(effect.name));
        } catch (const base::BadInput&) {
            formats.push_back({effect.name, effect.title, std::nullopt});
        }
    }
    return formats;
}

/// Folders that hold the model in a format, with the number of the format.
std::vector<std::pair<std::string, std::size_t>> foldersOf(const PrecisionData& data,
                                                           const std::vector<sessions::RunInfo>& all) {
    std::vector<std::pair<std::string, std::size_t>> folders;
    const std::vector<engine::PrecisionFormat> formats = formatsOf(data.result);
    for (const sessions::RunInfo& run : all) {
        const auto experiment = engine::Experiment::read(run.specJson);
        if (run.status != sessions::RunStatus::Done || !experiment || !experiment->has("to") ||
            experiment->text("model") != data.model) {
            continue;
        }
        for (std::size_t format = 0; format < formats.size(); ++format) {
            if (sameRounding(formats[format], *experiment)) {
                folders.emplace_back(experiment->text("output"), format);
                break;
            }
        }
    }
    return folders;
}

/// Whether a run's weights took the bytes of the model in BF16, within one percent.
bool residesInBf16(const Json& metrics, const PrecisionData& data) {
    const auto resident = engine::numberOf(metrics, engine::result::kResidentBytes);
    const auto dense = static_cast<double>(data.result.formats.front().bytes);
    return resident && std::abs(*resident - dense) <= dense / 100;
}

void measureRates(const std::vector<sessions::RunInfo>& all, PrecisionData& data) {
    data.measuredRates.resize(data.result.formats.size());
    const auto folders = foldersOf(data, all);
    for (const sessions::RunInfo& run : all) { // later runs replace earlier ones
        const auto experiment = engine::Experiment::read(run.specJson);
        if (run.status != sessions::RunStatus::Done || !experiment || !experiment->workload().needsPrompt ||
            experiment->isPlan()) {
            continue;
        }
        const Json metrics = base::parsedObject(run.metricsJson);
        const auto rate = engine::numberOf(metrics, engine::result::kDecodeTokensPerSecond);
        if (!rate || *rate <= 0 || engine::textOf(metrics, engine::result::kTimeBase) == "virtual") {
            continue;
        }
        const std::string model = experiment->text("model");
        if (model == data.model && residesInBf16(metrics, data)) {
            data.measuredRates.front() = rate;
        }
        for (const auto& [folder, format] : folders) {
            if (folder == model) {
                data.measuredRates[format] = rate;
            }
        }
    }
}

QString sentence(const base::Error& error) {
    return QString::fromStdString(error.message());
}

/// Where the run's model is: its folder, unless that is on another machine.
std::string placeOf(const PrecisionData& data) {
    std::error_code failed;
    return std::filesystem::is_directory(data.folder, failed) ? data.folder : data.model;
}

/// A matrix in the formats of the run, whose errors are known.
std::vector<engine::FormatChoice> knownChoices(const engine::PrecisionResult& result, std::size_t weight) {
    std::vector<engine::FormatChoice> choices;
    for (std::size_t format = 0; format < result.formats.size(); ++format) {
        const engine::WeightEffect& effect = result.effect(format, weight);
        const double bits = 8 * static_cast<double>(effect.bytes) / static_cast<double>(result.weights[weight].count());
        choices.push_back({result.formats[format].name, result.formats[format].title, effect.packable, bits,
                           effect.bytes, effect.error});
    }
    return choices;
}

/// Usual formats that the run did not have.
std::vector<engine::PrecisionFormat> otherFormats(const engine::PrecisionResult& result) {
    std::vector<engine::PrecisionFormat> formats = engine::precisionFormats(engine::kUsualTargets);
    std::erase_if(formats, [&](const engine::PrecisionFormat& format) {
        return std::ranges::find(result.formats, format.name, &engine::FormatEffect::name) != result.formats.end();
    });
    return formats;
}

} // namespace

std::optional<std::size_t> formatOfModel(const PrecisionData& data, const std::vector<sessions::RunInfo>& all,
                                         const std::string& model) {
    if (model == data.model) {
        return 0;
    }
    for (const auto& [folder, format] : foldersOf(data, all)) {
        if (folder == model) {
            return format;
        }
    }
    return std::nullopt;
}

PrecisionDataPtr precisionData(const sessions::RunInfo& run, const std::vector<sessions::RunInfo>& all) {
    const auto experiment = engine::Experiment::read(run.specJson);
    const bool live = run.status == sessions::RunStatus::Running;
    if ((run.status != sessions::RunStatus::Done && !live) || !experiment ||
        !engine::showsIn(experiment->workload(), kView)) {
        return nullptr;
    }
    const Json metrics = base::parsedObject(run.metricsJson);
    auto result = engine::precisionFromJson(metrics);
    if (!result) {
        return nullptr;
    }
    auto data = std::make_shared<PrecisionData>();
    data->result = std::move(*result);
    data->live = live;
    data->model = experiment->text("model");
    data->folder = engine::textOf(metrics, engine::result::kModelFolder);
    data->device = engine::textOf(metrics, engine::result::kDevice);
    measureRates(all, *data);
    const auto seconds = engine::numberOf(metrics, engine::result::kSeconds);
    const auto prefill = engine::numberOf(metrics, engine::result::kPlannedPrefillRate);
    if (data->result.text.scored() == 0 && seconds && prefill && *prefill > 0) {
        const double tokens = static_cast<double>(kTokensToScore) * static_cast<double>(data->result.formats.size());
        data->secondsToScore = *seconds + tokens / *prefill;
    }
    return data;
}

TensorFiles::TensorFiles() = default;
TensorFiles::~TensorFiles() = default;

/// Opens the run's model and gives it to `look`. What goes wrong becomes the result's error.
template <class Result, class Look>
std::shared_ptr<const Result> TensorFiles::looked(const PrecisionData& data, const Look& look) {
    auto result = std::make_shared<Result>();
    try {
        if (const std::string place = placeOf(data); lab_ == nullptr || place != place_) {
            lab_.reset();
            lab_ = std::make_unique<engine::TensorLab>(engine::openModel(place), pool_);
            place_ = place;
        }
        look(*lab_, *result);
    } catch (const base::Cancelled&) {
        throw; // another question came
    } catch (const base::Error& error) {
        lab_.reset(); // the files may be others next time
        *result = Result();
        result->error = sentence(error);
    }
    return result;
}

std::shared_ptr<const PrecisionTensor> TensorFiles::tensor(const PrecisionData& data, std::size_t weight,
                                                           std::size_t format, const base::StopToken& stop) {
    const engine::LabWeight& lab = data.result.weights.at(weight);
    const std::string& name = data.result.formats.at(format).name;
    return looked<PrecisionTensor>(data, [&](engine::TensorLab& tensors, PrecisionTensor& out) {
        const engine::PrecisionFormat chosen = engine::precisionFormat(name);
        out.detail = tensors.detail(lab.name, lab.expert, chosen, stop);
        out.worstGroup = tensors.group(lab.name, lab.expert, chosen, out.detail.worstGroups.front().group, stop);
        out.formats = knownChoices(data.result, weight);
    });
}

std::shared_ptr<const PrecisionTensor> TensorFiles::withOtherFormats(const PrecisionData& data, std::size_t weight,
                                                                     const PrecisionTensor& tensor,
                                                                     const base::StopToken& stop) {
    const engine::LabWeight& lab = data.result.weights.at(weight);
    return looked<PrecisionTensor>(data, [&](engine::TensorLab& tensors, PrecisionTensor& out) {
        out = tensor;
        std::ranges::move(tensors.inFormats(lab.name, lab.expert, otherFormats(data.result), stop),
                          std::back_inserter(out.formats));
        std::ranges::stable_sort(out.formats, std::greater{}, &engine::FormatChoice::bytes);
    });
}

std::shared_ptr<const PrecisionGroup> TensorFiles::group(const PrecisionData& data, std::size_t weight,
                                                         std::size_t format, std::int64_t group,
                                                         const base::StopToken& stop) {
    const engine::LabWeight& lab = data.result.weights.at(weight);
    const std::string& name = data.result.formats.at(format).name;
    return looked<PrecisionGroup>(data, [&](engine::TensorLab& tensors, PrecisionGroup& out) {
        out.detail = tensors.group(lab.name, lab.expert, engine::precisionFormat(name), group, stop);
    });
}

} // namespace vitrine::ui
