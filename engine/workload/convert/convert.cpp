// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The workload convert: a model in another format, with the error that each weight has in it.

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "engine/quant/conversion_target.h"
#include "engine/workload/common/result_text.h"
#include "engine/workload/common/row_options.h"
#include "engine/workload/common/run_setup.h"
#include "engine/workload/convert/calibration.h"
#include "engine/workload/convert/conversion_plan.h"
#include "engine/workload/convert/model_converter.h"
#include "engine/workload/experiment/option_value.h"
#include "engine/workload/experiment/result_sets.h"
#include "engine/workload/experiment/workloads.h"
#include "kernels/context/context.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

constexpr std::array<ResultSet, 4> kConvertResults = {result::kRunSet, result::kRateSet, result::kFileSet,
                                                      result::kConversionSet};
constexpr std::array<std::string_view, 8> kConvertSharedKeys = {
    "group_size", "int4_rule", "ignore", "output", "chat_format", "date", "chat_template", "chat_template_kwargs"};
constexpr std::array<WorkloadOutput, 1> kConvertOutputs{{{"output"}}};

constexpr std::array kConvertOptions = {
    OptionSpec{"to", OptionType::Choice, "int4", "", 0, 0, kConversionChoices, "", "Conversion", kConversionHelp},
    OptionSpec{"symmetric", OptionType::Bool, "", "", 0, 0, "", "", "Conversion",
               "Integers without zeros of their own for each group; unset: false for awq, else true"},
    OptionSpec{"calibrate", OptionType::Path, "", "", 0, 0, "", "", "Conversion",
               "Rows as finetune reads them: integers are rounded so that the model's products with these texts "
               "change least (error-compensated)"},
    OptionSpec{"calibrate_rows", OptionType::Integer, "128", "", 1, 65536, "", "", "Conversion",
               "Rows of calibrate that are read, each up to 2,048 tokens"},
};

/// Files are read and written in host memory.
bool prefersHost(const Experiment&) {
    return true;
}

std::optional<Quantization> targetOf(const Experiment& experiment) {
    return conversionTarget(experiment.text("to"), experiment.maybeInteger("group_size"),
                            experiment.has("symmetric") ? std::optional(experiment.flag("symmetric")) : std::nullopt,
                            experiment.text("int4_rule"));
}

void checkConvert(const Experiment& experiment, const std::string& name) {
    requireOption(experiment, name, "output", "name the folder that the model goes to");
    if (experiment.text("model").starts_with("synthetic:")) {
        failOption(name, "model", "convert reads a model's files; write a synthetic model with synthesize first");
    }
    const std::optional<std::int64_t> group = experiment.maybeInteger("group_size");
    if (group && !isGroupSize(*group)) {
        failOption(name, "group_size", fmt::format("must be a multiple of 8, or -1, and it is {}", *group));
    }
    checkIgnored(experiment, name);
    try {
        const std::optional<Quantization> target = targetOf(experiment);
        if (experiment.has("calibrate") && !canCalibrate(target)) {
            throw base::BadInput("calibrate: only integers are calibrated; choose int4 or int8, or leave it out");
        }
    } catch (const base::BadInput& error) {
        throw base::BadInput(fmt::format("{}: {}", name, error.message()));
    }
}

std::string_view roleName(ModelPart part) {
    switch (part) {
    case ModelPart::Attention:
        return "attention";
    case ModelPart::DenseMlp:
        return "mlp";
    case ModelPart::Experts:
        return "experts";
    case ModelPart::Router:
        return "router";
    default:
        throw base::Internal("convert: a weight without a role");
    }
}

Json orNull(const std::optional<double>& value) {
    return value ? Json(*value) : Json();
}

void addError(Json& row, const RoundingError& error) {
    row[result::kMeanSquaredError.key] = error.meanSquare();
    row[result::kSignalToNoise.key] = orNull(error.signalToNoise());
    row[result::kCosine.key] = orNull(error.cosine());
    row[result::kLargestError.key] = error.largest;
}

Json weightJson(const ConvertedWeight& weight) {
    Json row = {{result::kName.key, weight.name},
                {result::kShape.key, weight.shape},
                {result::kRole.key, roleName(weight.part)},
                {result::kFormatBefore.key, formatName(weight.before)},
                {result::kFormat.key, formatName(weight.after)},
                {result::kBytesBefore.key, weight.bytesBefore},
                {result::kBytesAfter.key, weight.bytesAfter}};
    addError(row, weight.error);
    return row;
}

/// What the weights of a role come to.
struct RoleSum {
    std::uint64_t bytesBefore = 0, bytesAfter = 0;
    RoundingError error;
};

Json rolesJson(const std::vector<ConvertedWeight>& weights) {
    std::map<ModelPart, RoleSum> sums;
    for (const ConvertedWeight& weight : weights) {
        RoleSum& sum = sums[weight.part];
        sum.bytesBefore += weight.bytesBefore;
        sum.bytesAfter += weight.bytesAfter;
        sum.error.add(weight.error);
    }
    Json rows = Json::array();
    for (const auto& [part, sum] : sums) {
        Json row = {{result::kName.key, roleName(part)},
                    {result::kElements.key, sum.error.count},
                    {result::kBytesBefore.key, sum.bytesBefore},
                    {result::kBytesAfter.key, sum.bytesAfter}};
        addError(row, sum.error);
        rows.push_back(std::move(row));
    }
    return rows;
}

/// The documents of the option calibrate.
std::vector<std::vector<std::int32_t>> calibrationDocuments(const Run& run, const ModelSource& source) {
    constexpr std::size_t kLongest = 2048;
    TrainingRowOptions options = rowOptions(run, source);
    options.mostRows = run.spec.integer("calibrate_rows");
    std::vector<std::vector<std::int32_t>> documents;
    const auto take = [&](TrainingRow row) {
        row.tokens.resize(std::min(row.tokens.size(), kLongest));
        if (!row.tokens.empty()) {
            documents.push_back(std::move(row.tokens));
        }
    };
    forTrainingRows(run.spec.text("calibrate"), options, run.stop, run.sinks.progress, take);
    if (documents.empty()) {
        throw base::BadInput(run.spec.text("calibrate") +
                             ": holds no row; write one JSON object on each line, or one array of them");
    }
    return documents;
}

/// The model and what it read, when the experiment names texts.
struct CalibratedModel {
    CalibratedModel(const Run& run, const ModelSource& source, kernels::Context& context)
        : model(context, source, modelOptions(run, context, "quantized"), run.sinks.progress),
          calibration(model, calibrationDocuments(run, source)) {}

    Model model;
    Calibration calibration;
};

void runConvert(const Run& run) {
    const ModelSource source = openSource(run);
    const RunDevices context = makeContext(run);
    addContextMetrics(run, *context);
    const base::TimeNs begin = context->clock().now();
    ConversionRules rules{targetOf(run.spec), run.spec.texts("ignore"), nullptr};
    if (rules.quantization) {
        warnOfIgnored(source, rules.ignored);
    } else if (!rules.ignored.empty()) {
        base::logWarning("--ignore has no effect: no weight is packed");
    }
    std::unique_ptr<CalibratedModel> calibrated;
    if (run.spec.has("calibrate")) {
        calibrated = std::make_unique<CalibratedModel>(run, source, *context);
        rules.factorOf = [&](std::int32_t layer, const std::string& weight) {
            return calibrated->calibration.factorOf(layer, weight);
        };
    }
    const ConvertedModel model =
        convertModel(source, rules, run.spec.text("output"), context->hostPool(), run.sinks.progress, run.stop);
    const double seconds = static_cast<double>(context->clock().now() - begin) * 1e-9;
    Json tensors = Json::array();
    for (const ConvertedWeight& weight : model.weights) {
        tensors.push_back(weightJson(weight));
    }
    run.metrics[result::kTensors.key] = std::move(tensors);
    run.metrics[result::kRoles.key] = rolesJson(model.weights);
    run.metrics[result::kBytesRead.key] = model.bytesRead;
    run.metrics[result::kBytes.key] = model.bytes;
    run.metrics[result::kFiles.key] = model.files;
    run.metrics[result::kSeconds.key] = seconds;
    run.metrics[result::kGbPerSecond.key] = seconds > 0 ? static_cast<double>(model.bytesRead) * 1e-9 / seconds : 0;
}

/// "369.1 KiB became 208.2 KiB of int4 ..": what was written, and what suffered most.
std::string convertSentence(const Experiment& experiment, const Json& metrics, const Json& roles) {
    const auto worst = std::ranges::min_element(roles, {}, [](const Json& role) {
        return numberOf(role, result::kSignalToNoise).value_or(std::numeric_limits<double>::infinity());
    });
    const auto ratio = numberOf(*worst, result::kSignalToNoise);
    return fmt::format("{} became {} of {}, written to {} in {}{}.\n",
                       base::formatBytes(countOf(metrics, result::kBytesRead).value_or(0)),
                       base::formatBytes(countOf(metrics, result::kBytes).value_or(0)), experiment.text("to"),
                       experiment.text("output"),
                       resultValueText(result::kSeconds.key, metrics.value("seconds", Json())),
                       ratio ? fmt::format("; {} kept least of its values, with a signal to noise of {:.1f} dB",
                                           textOf(*worst, result::kName), *ratio)
                             : "");
}

/// A sentence, and a line for each role.
std::optional<std::string> convertWords(const Experiment& experiment, const Json& metrics) {
    const Json& roles = rowsOf(metrics, result::kRoles);
    if (roles.empty()) {
        return std::nullopt; // it did not come to its end
    }
    constexpr std::array<const ResultField*, 6> kColumns = {&result::kBytesBefore,      &result::kBytesAfter,
                                                            &result::kMeanSquaredError, &result::kSignalToNoise,
                                                            &result::kCosine,           &result::kLargestError};
    std::vector<std::vector<std::string>> rows{{"role"}};
    for (const ResultField* column : kColumns) {
        rows.front().emplace_back(column->words);
    }
    for (const Json& role : roles) {
        std::vector<std::string>& row = rows.emplace_back();
        row.push_back(textOf(role, result::kName));
        for (const ResultField* column : kColumns) {
            const Json* value = valueOf(role, *column);
            row.push_back(resultValueText(column->key, value == nullptr ? Json() : *value));
        }
    }
    return convertSentence(experiment, metrics, roles) + "\n" + tableText(rows);
}

} // namespace

constinit const Workload kConvertWorkload = {
    .name = "convert",
    .title = "Convert",
    .optionSets = kModelOptions | kRunOptions,
    .optionKeys = kConvertSharedKeys,
    .ownOptions = kConvertOptions,
    .outputs = kConvertOutputs,
    .ownOptionsBefore = "output",
    .check = checkConvert,
    .run = runConvert,
    .prefersCpu = prefersHost,
    .results = kConvertResults,
    .resultText = convertWords,
};

} // namespace vitrine::engine
