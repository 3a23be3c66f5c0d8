// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/synthesize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "engine/checkpoint/atomic_file.h"
#include "engine/checkpoint/shards.h"
#include "engine/quant/storage_scheme.h"

namespace vitrine::engine {
namespace {

namespace fs = std::filesystem;
using kernels::DType;
using nlohmann::json;

bool endsWith(std::string_view text, std::string_view end) {
    return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

float inverseRoot(std::int64_t fanIn) {
    return 1 / std::sqrt(static_cast<float>(fanIn));
}

std::string generationText(const GenerationConfig& generation) {
    json root = {{"do_sample", generation.doSample}};
    if (!generation.eosTokens.empty()) {
        root["eos_token_id"] = generation.eosTokens;
    }
    if (generation.bosToken >= 0) {
        root["bos_token_id"] = generation.bosToken;
    }
    if (generation.padToken >= 0) {
        root["pad_token_id"] = generation.padToken;
    }
    return root.dump(2) + "\n";
}

/// Random bytes make a model only where files hold what is in memory.
void refuseConverted(const ModelSource& source) {
    for (const TensorSpec& spec : expectedTensors(source.config)) {
        if (spec.packed() && (spec.stored.converts || spec.dtype != spec.stored.memoryType)) {
            throw base::Unsupported(fmt::format("{}: {}: random weights are not written in this storage scheme; write "
                                                "a dense model and convert it",
                                                source.name, spec.name));
        }
    }
}

} // namespace

RandomRule randomRule(const ModelConfig& config, const TensorSpec& spec) {
    const std::string_view name = spec.name;
    if (spec.packed()) {
        const std::int64_t in = spec.weightShape[spec.weightShape.rank() - 1];
        const RandomFill fill = randomFill(spec.packing, spec.stored.field, in);
        return {fill.center, fill.deviation};
    }
    if (spec.part == ModelPart::Norm) {
        // Gemma multiplies by one plus the weight.
        return {config.normForm == kernels::RmsNormOrder::OnePlusWeight ? 0.0F : 1.0F, 0.05F};
    }
    if (endsWith(name, ".sinks")) {
        return {0, 1};
    }
    if (endsWith(name, "bias")) {
        return {0, 0.02F};
    }
    if (spec.part == ModelPart::Embedding) {
        // Tied rows are the head's, too; Gemma multiplies them by sqrt(hidden).
        const bool small = config.tiedEmbeddings || config.scaleEmbedding;
        return {0, small ? inverseRoot(config.hidden) : 1.0F};
    }
    if (spec.part == ModelPart::Experts && config.family == Family::GptOss) {
        return {0, inverseRoot(spec.shape[1])}; // (experts, in, out)
    }
    return {0, inverseRoot(spec.shape.back())};
}

SynthesizedFiles synthesizeCheckpoint(const ModelSource& source, const std::string& folder, const FillTensor& fill,
                                      base::ProgressSink* progress, const base::StopToken& stop,
                                      std::uint64_t shardBytes) {
    const fs::path root(folder);
    refuseConverted(source);
    const std::vector<Shard> shards = planShards(expectedTensors(source.config), shardBytes);
    std::uint64_t total = 0;
    for (const Shard& shard : shards) {
        total += shard.bytes;
    }
    makeModelFolder(folder, total);
    SynthesizedFiles written;
    std::uint64_t done = 0;
    std::uint64_t largest = 0;
    for (const Shard& shard : shards) {
        for (const TensorSpec& spec : shard.tensors) {
            largest = std::max(largest, bytesOf(spec));
        }
    }
    // One is made while the other is written. Left unset: the threads that fill them touch their pages first.
    const std::array buffers{std::unique_ptr<char[]>(new char[largest]), std::unique_ptr<char[]>(new char[largest])};
    std::future<void> finishing; // of the last shard: its bytes reach the disk while the next is made
    for (const Shard& shard : shards) {
        const std::string path = (root / shard.file).string();
        const std::shared_ptr<SafetensorsWriter> writer =
            SafetensorsWriter::create(path, shard.tensors, {{"format", "pt"}});
        std::uint32_t stream = shard.firstStream;
        std::future<void> writing; // of the last tensor; waits when it goes
        for (const TensorSpec& spec : shard.tensors) {
            base::throwIfStopped(stop);
            char* buffer = buffers[stream % 2].get();
            const std::uint64_t bytes = bytesOf(spec);
            fill(spec, randomRule(source.config, spec), stream++, buffer);
            if (writing.valid()) {
                writing.get();
            }
            writing = std::async(std::launch::async, [writer, buffer, bytes] { writer->write(buffer, bytes); });
            done += bytes;
            if (progress != nullptr) {
                progress->progress("Writing " + shard.file, done, total);
            }
        }
        writing.get();
        if (finishing.valid()) {
            finishing.get();
        }
        finishing = std::async(std::launch::async, [writer] { writer->finish(); });
        written.files.push_back(shard.file);
    }
    finishing.get();
    const auto text = [&](const std::string& name, const std::string& content) {
        writeTextFile((root / name).string(), content);
        written.files.push_back(name);
    };
    if (shards.size() > 1) {
        text("model.safetensors.index.json", indexText(shards));
    }
    text("generation_config.json", generationText(source.generation));
    // Last: a folder without it is no model.
    text("config.json", source.configText);
    for (const std::string& file : written.files) {
        std::error_code error;
        written.bytes += fs::file_size(root / file, error);
    }
    return written;
}

} // namespace vitrine::engine
