// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What those who write a model folder share: weights in files of bounded size with an index, and the small files beside
// them. A folder is a model once it has config.json, so that is written last.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"

namespace vitrine::engine {

inline constexpr std::uint64_t kShardBytes = std::uint64_t{5} * 1000 * 1000 * 1000;

/// One safetensors file of a model.
struct Shard {
    std::string file; ///< the name in the folder
    std::vector<TensorSpec> tensors;
    std::uint32_t firstStream = 0; ///< the place of its first tensor among all
    std::uint64_t bytes = 0;
};

/// Distributes the tensors, in their order, over files of at most `shardBytes` each, one tensor at least.
std::vector<Shard> planShards(std::vector<TensorSpec> specs, std::uint64_t shardBytes);

/// The index of several files.
inline constexpr const char* kIndexFile = "model.safetensors.index.json";
std::string indexText(const std::vector<Shard>& shards);

/// Throws BadInput when the disk of the folder, which need not be there yet, has less than `bytes` free.
void requireFreeSpace(const std::string& folder, std::uint64_t bytes);

/// Whether a model's folder has a file of this name: its config, its weights or their index.
bool isModelFile(const std::string& name);
/// Makes the folder for `bytes` of weights, or takes away what a killed process left of a model in it. Throws BadInput
/// when they have no room, when it cannot be made, and when it holds a model already.
void makeModelFolder(const std::string& folder, std::uint64_t bytes);

/// The list of what trainings wrote into a folder, which is of no model.
inline constexpr const char* kTrainingFilesName = "training_files.json";
/// The names of tokenizer, chat template and the like in a model folder.
std::vector<std::string> smallFiles(const std::string& folder);
/// Copies them as they are, and returns their names. Throws BadInput when one cannot be written.
std::vector<std::string> copySmallFiles(const std::string& from, const std::string& to);

} // namespace vitrine::engine
