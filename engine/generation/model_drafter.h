// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Drafts by a smaller model with the same vocabulary. It reads what a request has and continues it token by token, the
// requests of one call together.
//
// A drafted token is drawn with the request's own sampling parameters and with the random number of its position, which
// is the number that the large model draws with. Where both models have similar probabilities they then mostly choose
// the same token, at any temperature. Greedy requests get greedy drafts.
//
// The draft model's keys and values stay in a cache of its own between steps. What the large model did not keep of a
// draft is taken out of it. When a cache with a pool has no room for a request, or when the request is longer than the
// draft model's context, the request has no draft.

#include <map>
#include <vector>

#include "engine/cache/kv_cache.h"
#include "engine/generation/speculation.h"
#include "engine/model/model.h"

namespace vitrine::engine {

struct ModelDrafterOptions {
    /// `rollBackTokens` is set by the drafter. Kind Paged: its whole pool gets its memory at once.
    KvCacheOptions cache;
    std::int64_t draftTokens = 0;  ///< of one draft at most
    std::int64_t prefillChunk = 0; ///< tokens of one step at most; 0: prefillChunk() in model.h chooses
};

class ModelDrafter final : public Drafter {
public:
    /// `model` is the draft model, on the context of the large one; it must outlive the drafter. Throws OutOfMemory,
    /// and Unsupported for a model that cannot check several tokens in one step either (requireSpeculation).
    ModelDrafter(Model& model, const ModelDrafterOptions& options);

    void draft(std::span<const DraftJob> jobs) override;
    void forget(std::int32_t request) override;
    void forgetAll() override;
    void sleep() override;
    void wake() override { takePool(); }
    std::uint64_t bytesPerToken() const override { return model_.weightBytesPerToken(); }
    void dropGraphs() override { model_.dropGraphs(); }
    const KvCache& cache() const { return cache_; }

private:
    /// What the cache holds of a request.
    struct Known {
        int sequence = 0;
        std::int64_t history = 0;        ///< tokens of it that are in the cache for certain
        std::vector<std::int32_t> draft; ///< tokens after them that were drafted then
    };
    struct Drafting {
        DraftJob job;
        int sequence = 0;
        std::int64_t next = 0; ///< the first of its tokens that is not in the cache
    };

    std::vector<Drafting> begin(std::span<const DraftJob> jobs);
    bool makeRoom(const DraftJob& job, int sequence);
    void goBack(Known& known, std::span<const std::int32_t> history);
    void step(std::vector<Drafting>& draftings);
    void takePool();

    Model& model_;
    ModelDrafterOptions options_;
    KvCache cache_;
    std::map<std::int32_t, Known> known_; ///< by request
    std::int32_t steps_ = 0;
};

} // namespace vitrine::engine
