// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/finetune/finetune_save.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/checkpoint/output_check.h"
#include "engine/checkpoint/shards.h"
#include "engine/quant/format_options.h"
#include "engine/training/adapters/adapter_saving.h"
#include "engine/training/files/merged_model.h"
#include "engine/training/files/training_checkpoint.h"
#include "engine/training/files/training_folder.h"
#include "engine/workload/experiment/results.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

namespace {

/// The loss of a checkpoint, loaded beside what is there.
double lossOfFolder(const std::string& folder, kernels::Context& context, const ModelOptions& options,
                    const std::vector<TrainingBatch>& batches, const MemoryTechniques& techniques) {
    const ModelSource source = openModel(folder);
    Model model(context, source, options, nullptr);
    GradientPass pass(model, techniques);
    return meanLoss(pass, context, batches);
}

/// The copies that the option merge asks for; null where it asks for dense weights, or for a format that values are
/// packed to as they are written.
const PackedCopies* writtenCopies(const Run& run, const FinetuneModel& model) {
    const std::string merge = run.spec.text("merge");
    // An adapter that stays beside packed weights is not in the copies.
    const PackedCopies* copies = finetuneMethod(run.spec) == FinetuneMethod::Qlora ? nullptr : model.packed();
    if (merge == "none" || formatNamed(merge) == kernels::WeightFormat::Dense) {
        return nullptr;
    }
    const bool asked = copies != nullptr && copies->size() > 0 && copies->copy(0).format == formatNamed(merge);
    if (!asked && needsCopies(merge)) {
        throw base::BadInput(fmt::format("merge: no weight was trained as {}; choose bf16", merge));
    }
    return asked ? copies : nullptr;
}

void merge(const Run& run, const ModelSource& source, FinetuneModel& model, const std::vector<TrainingBatch>& batches,
           const MemoryTechniques& techniques, double adapted) {
    const std::string folder = run.spec.text("output") + "/merged";
    kernels::Context& context = model.model().context();
    if (const PackedCopies* copies = writtenCopies(run, model)) {
        writeMergedModel(folder, source, model.model(), *copies, run.sinks.progress);
    } else {
        writeMergedModel(folder, source, model.model(), formatNamed(run.spec.text("merge")), run.sinks.progress);
    }
    nlohmann::json& metrics = run.metrics;
    metrics[result::kMerged.key] = folder;
    if (batches.empty()) {
        return;
    }
    double base = 0;
    {
        const UnquantizedWeights unquantized(model);
        const AdapterPause pause(*model.adapter());
        GradientPass pass(model.model(), techniques);
        base = meanLoss(pass, context, batches);
    }
    ModelOptions options = model.model().options();
    context.memory().trim();                     // of the pass above
    options.pack = kernels::WeightFormat::Dense; // as written
    const double merged = lossOfFolder(folder, context, options, batches, techniques);
    metrics[result::kBaseLoss.key] = base;
    metrics[result::kMergedLoss.key] = merged;
    metrics[result::kMergeLossKept.key] = base > adapted ? (base - merged) / (base - adapted) : 0.0;
}

} // namespace

namespace {

/// How the stacks of experts of the source are packed.
kernels::WeightFormat formatOfStacks(const ModelConfig& config) {
    const auto found = std::ranges::find_if(
        config.packings, [](const auto& packing) { return packing.second.scheme == StorageScheme::GptOss; });
    return found == config.packings.end() ? kernels::WeightFormat::Dense : found->second.format;
}

} // namespace

void requireRoomForResult(const Run& run, const ModelSource& source, FinetuneModel& model, std::int64_t first,
                          std::int64_t last) {
    if (!run.spec.has("output") || !model.model().context().can().computesValues) {
        return;
    }
    const std::string folder = run.spec.text("output");
    const bool adapter = model.adapter() != nullptr;
    std::uint64_t bytes = 0;
    if (const PackedCopies* copies = writtenCopies(run, model)) {
        bytes = mergedModelBytes(source, model.model(), *copies);
    } else if (!adapter || run.spec.text("merge") != "none") {
        bytes = mergedModelBytes(source, model.model(),
                                 adapter ? formatNamed(run.spec.text("merge")) : formatOfStacks(source.config));
    }
    const bool goesOn = goesOnIn(run.spec.text("resume"), folder);
    const bool replaces = run.spec.flag("overwrite") && !goesOn;
    const auto there = static_cast<std::int64_t>(goesOn ? namedCheckpoints(folder).size() : 0);
    bytes += trainingCheckpointBytes(model.state()) *
             static_cast<std::uint64_t>(checkpointsAtOnce(first, last, run.spec.integer("save_every"),
                                                          run.spec.integer("keep_checkpoints"), there));
    const std::uint64_t freed = replaces ? earlierTrainingBytes(folder) : 0;
    if (bytes > freed) {
        requireFreeSpace(folder, bytes - freed);
    }
}

namespace {

/// Quantization-aware training saves its packed copies, or the masters: converting them gives the same codes.
void writeWeights(const Run& run, const ModelSource& source, FinetuneModel& model) {
    const std::string folder = run.spec.text("output");
    if (const PackedCopies* copies = writtenCopies(run, model)) {
        writeMergedModel(folder, source, model.model(), *copies, run.sinks.progress);
    } else if (model.quantizes()) {
        const UnquantizedWeights masters(model);
        writeMergedModel(folder, source, model.model(), kernels::WeightFormat::Dense, run.sinks.progress);
    } else {
        writeMergedModel(folder, source, model.model(), formatOfStacks(source.config), run.sinks.progress);
    }
}

} // namespace

void saveResult(const Run& run, const ModelSource& source, FinetuneModel& model, Trainer& trainer,
                const std::vector<TrainingBatch>& batches) {
    kernels::Context& context = model.model().context();
    if (!run.spec.has("output") || !context.can().computesValues) {
        return;
    }
    const kernels::TraceScope phase(context.tracer(), base::ScopeKind::Phase, "save");
    const std::string folder = run.spec.text("output");
    const bool judges = !batches.empty();
    if (judges) {
        run.metrics[result::kTrainedLoss.key] = trainer.loss(batches);
    }
    if (model.adapter() == nullptr) {
        writeWeights(run, source, model);
        trainer.giveBack();
        if (judges) {
            run.metrics[result::kSavedLoss.key] =
                lossOfFolder(folder, context, model.model().options(), batches, trainer.techniques());
        }
        return;
    }
    writeAdapter(folder, model.adapterConfig(), model.adapter()->values(), model.adapterBefore());
    model.adapter()->read(AdapterFile::open(folder));
    if (PackedCopies* packed = model.packed()) {
        if (judges) {
            const UnquantizedWeights unquantized(model);
            run.metrics[result::kAdapterLoss.key] = trainer.loss(batches);
        }
        packed->refresh();
    }
    const double adapted = judges ? trainer.loss(batches) : 0;
    if (judges) {
        run.metrics[result::kSavedLoss.key] = adapted;
    }
    if (run.spec.text("merge") != "none") {
        trainer.giveBack();
        merge(run, source, model, batches, trainer.techniques(), adapted);
    }
}

} // namespace vitrine::engine
