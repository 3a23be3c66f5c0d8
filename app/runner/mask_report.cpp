// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/mask_report.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "app/runner/mask_picture.h"
#include "base/thread_pool.h"
#include "engine/attention/block_mask_file.h"
#include "kernels/program/emitter.h"
#include "kernels/program/interval_analysis.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

double secondsSince(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

} // namespace

json maskReport(const MaskQuestion& question, base::ProgressSink* progress, const base::StopToken& stop) {
    engine::CapturedTensors tensors;
    if (!question.tensorsFile.empty()) {
        tensors = engine::readCapturedTensors(question.tensorsFile);
    }
    const engine::ModModule module = engine::parseMods(question.mods);
    const engine::ModProgram mask = module.mask(question.mask, engine::modOptions(question.mods, tensors));
    const kernels::CaptureBinding binding = mask.binding();
    base::ThreadPool pool(question.threads);
    const engine::ModRequest& mods = question.mods;

    const auto buildBegin = std::chrono::steady_clock::now();
    const kernels::BlockMask blocks = kernels::buildBlockMask(
        mask.program, binding,
        {mods.batch, mods.heads, mods.queries, mods.keys, question.blockSize, question.blockSize}, pool, progress,
        stop);
    const double buildSeconds = secondsSince(buildBegin);
    const auto densityBegin = std::chrono::steady_clock::now();
    const double density = kernels::elementDensity(blocks, mask.program, binding, pool, stop);
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
            {"density_seconds", densitySeconds},
            {"notes", mask.notes}};
}

} // namespace vitrine::app
