// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Files of rollouts: a whole safetensors file. Seeds: tests/fixtures/grpo-llama/rollouts.safetensors.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "engine/rl/policy/policy_batches.h"

namespace base = vitrine::base;
namespace engine = vitrine::engine;

namespace {

constexpr std::int64_t kVocab = 512;

/// What was accepted can be trained on.
void requireWhole(const engine::Rollouts& rollouts) {
    for (const bool share : {false, true}) {
        engine::PolicyBatchOptions options;
        options.sharePrompts = share;
        const engine::PolicyBatches batches = engine::policyBatches(rollouts, options);
        std::int64_t predicted = 0;
        for (const engine::TrainingBatch& batch : batches.batches) {
            predicted += batch.predicted();
        }
        if (predicted != rollouts.answerTokens()) {
            std::abort();
        }
    }
}

void requireOneLine(const base::Error& error) {
    if (error.message().find('\n') != std::string::npos) {
        std::abort();
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const int file = ::memfd_create("rollouts", 0);
    if (file < 0 || ::write(file, data, size) != static_cast<ssize_t>(size)) {
        std::abort();
    }
    try {
        requireWhole(engine::readRollouts("/proc/self/fd/" + std::to_string(file), kVocab));
    } catch (const base::BadInput& error) {
        requireOneLine(error);
    } catch (const base::Unsupported& error) { // a GGUF file
        requireOneLine(error);
    }
    ::close(file);
    return 0;
}
