// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/reports/mask_report.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/runner/reports/mask_picture.h"
#include "base/output_file.h"
#include "base/thread_pool.h"
#include "engine/attention/block_mask_cache.h"
#include "engine/attention/block_mask_file.h"
#include "engine/attention/device_blocks.h"
#include "engine/checkpoint/output_check.h"
#include "kernels/context/context_options.h"
#include "kernels/memory/memory.h"
#include "kernels/memory/resource.h"
#include "kernels/program/emitter.h"
#include "kernels/program/interval_analysis.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

double secondsSince(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// A GPU with the captures of a mask in its memory.
class MaskDevice {
public:
    MaskDevice(const engine::ChosenProgram& mask, const kernels::BlockMaskShape& shape, const base::StopToken& stop)
        : context_(options(stop)) {
        kernels::BoundProgram bound;
        bound.program = &mask.program;
        for (const kernels::TensorView& view : mask.binding().tensors) {
            tensors_.emplace_back(context_.memory().general(), base::MemoryCategory::BlockMask, "captured", view.dtype,
                                  view.shape);
            bound.captures.tensors.push_back(tensors_.back().view());
            context_.upload(view.data, bound.captures.tensors.back().data, view.bytes());
        }
        blocks_ = engine::deviceBlocks(context_, bound, shape);
    }

    kernels::BlockEvaluator* blocks() { return blocks_.get(); }

private:
    static kernels::ContextOptions options(const base::StopToken& stop) {
        kernels::ContextOptions made;
        made.backend = kernels::Backend::Cuda;
        made.stop = stop;
        return made;
    }

    kernels::Context context_;
    std::vector<kernels::Tensor> tensors_;
    std::unique_ptr<kernels::BlockEvaluator> blocks_;
};

/// Before anything is computed.
void checkMaskFiles(const MaskQuestion& question) {
    std::vector<engine::NamedFile> inputs{{"tensors", question.tensorsFile}};
    for (const std::string& file : question.mods.files) {
        inputs.push_back({"mods", file});
    }
    const engine::NamedFile picture{"png", question.picture};
    engine::checkOutputFile(picture, base::kPictureOutput, inputs);
    inputs.push_back(picture);
    engine::checkOutputFile({"output", question.output}, engine::kMaskArraysOutput, inputs);
}

} // namespace

json maskReport(const MaskQuestion& question, base::ProgressSink* progress, const base::StopToken& stop) {
    checkMaskFiles(question);
    engine::CapturedTensors tensors;
    if (!question.tensorsFile.empty()) {
        tensors = engine::readCapturedTensors(question.tensorsFile);
    }
    const engine::PyModule module = engine::parseModule(question.mods);
    const engine::ChosenProgram mask = module.mask(question.mask, engine::programOptions(question.mods, tensors));
    const kernels::CaptureBinding binding = mask.binding();
    base::ThreadPool pool(question.threads);
    const engine::ProgramChoice& mods = question.mods;

    const kernels::BlockMaskShape shape{mods.batch, mods.heads,         mods.queries,
                                        mods.keys,  question.blockSize, question.blockSize};
    std::optional<MaskDevice> device;
    if (question.onGpu) {
        device.emplace(mask, shape, stop);
    }
    kernels::BlockEvaluator* const evaluator = device ? device->blocks() : nullptr;

    const auto buildBegin = std::chrono::steady_clock::now();
    const engine::BlockMaskCache::Found found =
        engine::BlockMaskCache::shared().get(mask.program, binding, shape, pool, progress, stop, evaluator);
    const kernels::BlockMask& blocks = *found.mask;
    const double buildSeconds = secondsSince(buildBegin);
    const auto densityBegin = std::chrono::steady_clock::now();
    const double density = kernels::elementDensity(blocks, mask.program, binding, pool, stop, evaluator);
    const double densitySeconds = secondsSince(densityBegin);

    if (!question.picture.empty()) {
        writeMaskPicture(blocks, question.picture);
    }
    if (!question.output.empty()) {
        engine::writeBlockMaskArrays(blocks, question.output);
    }
    return {{"mask", question.mask},
            {"program", kernels::printProgram(mask.program, "mask_mod")},
            {"q_len", mods.queries},
            {"kv_len", mods.keys},
            {"block_size", question.blockSize},
            {"batch", blocks.shape.batch},
            {"heads", blocks.shape.heads},
            {"blocks_full", blocks.full},
            {"blocks_partial", blocks.partial},
            {"blocks_empty", blocks.empty},
            {"block_sparsity", blocks.blockSparsity()},
            {"full_share", blocks.fullShare()},
            {"element_density", density},
            {"metadata_bytes", blocks.metadataBytes()},
            {"closed_form", kernels::intervalRows(mask.program).has_value()},
            {"build_seconds", buildSeconds},
            {"block_mask_cached", found.hit},
            {"backend", evaluator != nullptr ? "cuda" : "cpu"},
            {"density_seconds", densitySeconds},
            {"notes", mask.notes}};
}

} // namespace vitrine::app
