// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/cuda/kept_state.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fmt/format.h>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "kernels/cuda/cuda_options.h"
#include "kernels/cuda/jit/kernel_library.h"

namespace vitrine::kernels {

namespace {

constexpr std::size_t kMostPackFiles = 4096;

/// A text with names, sizes and times of the files of a pack. It changes when somebody who works on a pack edits a file
/// between two runs. The number of files is limited, because a wrong folder would take minutes; beyond the limit the
/// text never equals another one.
std::string filesOf(const std::string& folder) {
    namespace fs = std::filesystem;
    std::vector<std::string> files;
    std::error_code error;
    for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        std::error_code gone;
        if (entry->is_regular_file(gone)) {
            files.push_back(fmt::format("{} {} {}", entry->path().string(), entry->file_size(gone),
                                        entry->last_write_time(gone).time_since_epoch().count()));
        }
        if (files.size() > kMostPackFiles) {
            static std::atomic<std::uint64_t> unique{0};
            return fmt::format("{} too many files {}", folder, ++unique);
        }
    }
    std::sort(files.begin(), files.end());
    return fmt::format("{}\n{}\n", folder, fmt::join(files, "\n"));
}

std::string keyOf(const CudaOptions& options) {
    std::string key = fmt::format("{} {} {}\n", options.device, options.dependentLaunch, options.cacheFolder);
    for (const std::string& pack : options.kernelPacks) {
        key += filesOf(pack);
    }
    for (const auto& [op, variant] : options.kernelOverrides) {
        key += fmt::format("{}={}\n", op, variant);
    }
    return key;
}

} // namespace

CudaContext KeptState::takeCuda(const CudaOptions& options) {
    std::string key = keyOf(options);
    if (cuda_ && key == cudaKey_) {
        CudaContext kept = std::move(*cuda_);
        cuda_.reset();
        kept.makeCurrent();
        kept.beginRun(weights_.bytes());
        return kept;
    }
    // This comes first, so that a new context does not count this memory as held by others.
    release();
    CudaContext made(options);
    cudaKey_ = std::move(key);
    return made;
}

void KeptState::giveCuda(CudaContext&& cuda) noexcept {
    try {
        cuda.synchronize();
        cuda_.emplace(std::move(cuda));
    } catch (const base::Error& error) {
        releaseWeights();
        base::logDebug(fmt::format("nothing of this run's device is kept: {}", error.message()));
    }
}

void KeptState::giveWeights(std::string key, KeptReservation block) noexcept {
    weightsKey_ = std::move(key);
    weights_ = std::move(block);
}

void KeptState::releaseWeights() noexcept {
    if (cuda_) {
        cuda_->makeCurrent();
    }
    weights_.reset();
    weightsKey_.clear();
}

void KeptState::release() noexcept {
    releaseWeights();
    cuda_.reset();
    cudaKey_.clear();
}

} // namespace vitrine::kernels
